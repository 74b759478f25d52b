"""Running the scripts of an OS definition on this node.

A script runs as the daemon's user in its own directory and session, with an environment of its
own, nothing on its standard input, and everything it prints in a log file of its own.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ganeti import errors
from ganeti.base import files, process
from ganeti.base.clock import SYSTEM, Clock
from ganeti.errors import ErrorCode
from ganeti.guest_os import definition, definition_files, environment
from ganeti.guest_os.definition import OsDefinition
from ganeti.hypervisor.interface import AttachedDisk
from ganeti.paths import Paths
from ganeti.rpc.objects import NodeInstance

_log = logging.getLogger(__name__)

#: Seconds a script may run; a little less than the time limits of the calls that start them.
CREATE_TIMEOUT = 86400 - 600
RENAME_TIMEOUT = 3600 - 60
VERIFY_TIMEOUT = 300 - 30

#: The check that the verify script can be asked for.
CHECK_PARAMETERS = "parameters"

LOG_MODE = 0o640
_LOG_DIR_MODE = 0o750
_TAIL_LINES = 20
_TAIL_BYTES = 16 * 1024
_TAIL_WIDTH = 300
#: Longest name of a file in bytes, less room for a number that tells equal names apart.
_NAME_LIMIT = 255 - 8


def create(
    instance: NodeInstance,
    disks: Sequence[AttachedDisk],
    paths: Paths,
    *,
    reinstall: bool = False,
    debug: int = 0,
    timeout: float = CREATE_TIMEOUT,
    clock: Clock = SYSTEM,
) -> Path:
    """Install ``instance.os`` on assembled disks; blocks until the script ends.

    ``disks`` are in the order in which the guest sees them; not idempotent, as the script decides.
    A variant that the definition does not list is accepted: whether to was decided before.

    Returns:
        The log file.

    Raises:
        OpPrereqError: the definition is missing or has defects, or a parameter cannot be passed.
        OpExecError: the script failed or took longer than ``timeout`` seconds (its whole process
            group is killed then); the text ends with the last lines of the log. Or the definition
            has only a script for a helper guest.
    """
    found = definition.load(instance.os, paths.os_search_path, force_variant=True)
    if not found.trusted:
        raise errors.OpExecError(
            f"OS '{found.name}' in {found.path} is not trusted: it has only the script"
            f" {definition_files.CREATE_UNTRUSTED}, which must run in a helper guest"
        )
    env = environment.make_create_environment(
        found, instance, disks, reinstall=reinstall, debug=debug
    )
    log = make_log("add", instance, paths, clock=clock)
    _run(found, definition_files.CREATE, instance.name, env, log, timeout)
    return log


def rename(
    instance: NodeInstance,
    disks: Sequence[AttachedDisk],
    old_name: str,
    paths: Paths,
    *,
    debug: int = 0,
    timeout: float = RENAME_TIMEOUT,
    clock: Clock = SYSTEM,
) -> Path | None:
    """Tell the guest's disks the new name; ``instance.name`` is the new one already.

    Blocks, returns and raises as :func:`create`; a definition that is not trusted is fine here, and
    for one without this script there is nothing to do (None).
    """
    found = definition.load(instance.os, paths.os_search_path, force_variant=True)
    if not found.has_script(definition_files.RENAME):
        _log.info("OS %s has no script rename: the guest keeps its own name", found.name)
        return None
    env = environment.make_rename_environment(found, instance, disks, old_name, debug=debug)
    log = make_log("rename", instance, paths, clock=clock)
    _run(found, definition_files.RENAME, instance.name, env, log, timeout)
    return log


def verify(
    found: OsDefinition,
    osparams: Mapping[str, object],
    *,
    checks: Sequence[str] = (CHECK_PARAMETERS,),
    debug: int = 0,
    timeout: float = VERIFY_TIMEOUT,
) -> None:
    """Let a definition judge parameters; nothing to do for one older than API 20.

    Raises:
        OpPrereqError: (INVAL) an unknown parameter or check, or the script does not like a value;
            (ENVIRON) the script cannot be run or takes too long.
    """
    if max(found.api_versions) < definition_files.PARAMETERS_FROM:
        return
    for check in checks:
        if check != CHECK_PARAMETERS:
            raise errors.OpPrereqError(
                f"an OS cannot be asked to verify '{check}': only '{CHECK_PARAMETERS}' is known",
                ErrorCode.INVAL,
            )
    if CHECK_PARAMETERS in checks:
        found.check_parameters(osparams)
    env = environment.common(found, osparams, debug=debug)
    script = found.script(definition_files.VERIFY)
    try:
        result = process.run([str(script), *checks], timeout=timeout, env=env, cwd=found.path)
    except errors.CommandError as err:
        raise errors.OpPrereqError(_explain_start_failure(script, err), ErrorCode.ENVIRON) from err
    if result.ok:
        return
    output = _tidy(result.stdout + result.stderr)
    raise errors.OpPrereqError(
        f"OS '{found.full_name}' does not accept the parameters:"
        f" {script} {_ending(result, timeout)}" + (f":\n{output}" if output else ""),
        ErrorCode.ENVIRON if result.timed_out else ErrorCode.INVAL,
    )


def validate(
    name: str,
    osparams: Mapping[str, object],
    paths: Paths,
    *,
    required: bool = True,
    checks: Sequence[str] = (CHECK_PARAMETERS,),
    force_variant: bool = False,
    hypervisor: str = "",
    timeout: float = VERIFY_TIMEOUT,
) -> bool:
    """Whether an OS can be used on this node with these parameters and this hypervisor.

    False only when it is not installed and not ``required``. ``hypervisor`` is empty when no
    instance is meant.

    Raises:
        OpPrereqError: not installed, with defects, no such variant or none named where there are
            some, not for this hypervisor, or parameters are refused.
    """
    plain, _ = definition.split_name(name)
    if not required and definition.find(plain, paths.os_search_path) is None:
        return False
    found = definition.load(name, paths.os_search_path, force_variant=force_variant)
    if not force_variant:
        found.check_variant_named(name)
    if hypervisor:
        found.check_hypervisor(hypervisor)
    verify(found, osparams, checks=checks, timeout=timeout)
    return True


def make_log(action: str, instance: NodeInstance, paths: Paths, *, clock: Clock = SYSTEM) -> Path:
    """A new empty file ``<log>/os/<action>-<os>-<instance>-<timestamp>.log``, mode 0640.

    A very long instance name is cut so that the name fits; equal names get a number.

    Raises:
        OpExecError: it cannot be made.
    """
    stamp = time.strftime("%Y-%m-%d_%H_%M_%S", time.localtime(clock.now()))
    start = f"{action}-{instance.os}-{instance.name}".replace("/", "_")
    room = _NAME_LIMIT - len(stamp) - len("-.log")
    base = f"{start.encode()[:room].decode(errors='ignore')}-{stamp}"
    try:
        files.ensure_dir(paths.os_log, _LOG_DIR_MODE)
        return _make_new(paths.os_log, base)
    except OSError as err:
        raise errors.OpExecError(
            f"cannot make a log file in {paths.os_log}: {err.strerror}"
        ) from err


def _make_new(directory: Path, base: str) -> Path:
    number = 1
    while True:
        path = directory / (f"{base}.log" if number == 1 else f"{base}-{number}.log")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            fd = os.open(path, flags, LOG_MODE)
        except FileExistsError:
            number += 1
            continue
        try:
            os.fchmod(fd, LOG_MODE)
        finally:
            os.close(fd)
        return path


def _run(
    found: OsDefinition,
    action: str,
    instance_name: str,
    env: environment.Environment,
    log: Path,
    timeout: float,
    clock: Clock = SYSTEM,
) -> None:
    script = found.script(action)
    begin = clock.monotonic()
    try:
        result = process.run([str(script)], timeout=timeout, env=env, cwd=found.path, log=log)
    except errors.CommandError as err:
        raise errors.OpExecError(_explain_start_failure(script, err)) from err
    ending = _ending(result, timeout)
    _log.info(
        "OS script %s for %s %s after %.1f s, output in %s",
        script,
        instance_name,
        ending,
        clock.monotonic() - begin,
        log,
    )
    if result.ok:
        return
    tail = read_tail(log)
    raise errors.OpExecError(
        f"OS script {action} of '{found.full_name}' for instance {instance_name} {ending};"
        + (f" the last lines of its log {log}:\n{tail}" if tail else f" its log {log} is empty")
    )


def _ending(result: process.Result, timeout: float) -> str:
    if result.timed_out:
        return f"took longer than {timeout:g} s and was killed"
    if result.code < 0:
        return f"was killed by signal {-result.code}"
    return "succeeded" if result.code == 0 else f"failed with exit code {result.code}"


def _explain_start_failure(script: Path, err: errors.CommandError) -> str:
    """Why a script that exists does not start: mostly its first line."""
    text = errors.text(err)
    try:
        with script.open("rb") as stream:
            first = stream.readline(200).decode("utf-8", "replace").strip()
    except OSError:
        return text
    if not first.startswith("#!"):
        return f"{text}; its first line does not name an interpreter (as in #!/bin/sh)"
    return f"{text}; its first line is {first!r}: is that program installed?"


def read_tail(log: Path) -> str:
    """The last lines of a log, without control characters."""
    try:
        with log.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - _TAIL_BYTES))
            return _tidy(stream.read().decode("utf-8", "replace"))
    except OSError as err:
        return f"(cannot be read: {err.strerror})"


def _tidy(text: str) -> str:
    """The last lines of an output, without control characters, long lines cut."""
    lines = [line.rstrip() for line in text.splitlines()]
    shown = [line for line in lines if line][-_TAIL_LINES:]
    return "\n".join(
        "".join(char if char.isprintable() or char == "\t" else "?" for char in line[:_TAIL_WIDTH])
        for line in shown
    )
