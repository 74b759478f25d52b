"""This node goes over to another installed version: the link is set, daemons start again.

Guests are in scopes or sessions of their own and run on. A kill at any point leaves the link at one
of the two versions, and a node daemon of the other one, or none: then the same is done again. A
daemon that was stopped and not started again is started by the watcher, with the version that the
link says.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from ganeti import constants, errors
from ganeti.base import daemon, files, process, releases, services
from ganeti.base.releases import Version
from ganeti.paths import Paths

#: Seconds in which a version must say what it is.
_PROBE = 60.0

#: Program that asks a version for its name.
_TELL = "from ganeti import constants; print(constants.RELEASE_VERSION)"

Undo = Callable[[], None]


def switch(
    where: Paths,
    version: Version,
    between: Callable[[], Undo] = lambda: lambda: None,
    wanted: Sequence[str] = (),
) -> None:
    """Use another installed version on this node; blocks until its daemons serve.

    ``between`` is called while no daemon of the master runs, and returns how it is taken back.
    Daemons that run are started again, and those in ``wanted`` in any case. When one of them does
    not start, the former version is put back.

    Raises:
        OpPrereqError: the version is not installed, or not usable; nothing was changed.
        OpExecError: a daemon did not start; the text says which version runs now.
        LockError: somebody else is doing the same.
    """
    with files.FileLock(where.version_lock).hold(blocking=False):
        probe(where, version)
        former = releases.find_active(where)
        names = [n for n in services.ALL if n in wanted or services.is_running(n, where)]
        master = [name for name in names if services.ALL[name].of_master]
        for name in reversed(master):
            services.stop(name, where)
        try:
            with _keep_master_away(where, master):
                take_back = between()
                try:
                    releases.use(version, where)
                except (errors.GanetiError, OSError):
                    take_back()
                    raise
        except (errors.GanetiError, OSError):
            _start_again(master, where)
            raise
        # The node daemon comes last but for the master's: one of the new version means all are.
        others = [name for name in reversed(names) if name not in master]
        try:
            _start_again([*others, *master], where)
        except errors.GanetiError as err:
            if former is None or former == version:
                raise
            _go_back(where, former, [*others, *master], take_back)
            raise errors.OpExecError(
                f"version {version} does not run here, so {former} is in use again:"
                f" {errors.text(err)}"
            ) from err


def probe(where: Paths, version: Version) -> None:
    """Make sure that a version is installed here, and that its programs can be loaded.

    Raises:
        OpPrereqError: they cannot, or are of another version.
    """
    modules = ", ".join(service.module for service in services.ALL.values())
    python = releases.python_of(version, where)
    words = [python, "-I", "-c", f"import {modules}; {_TELL}"]
    result = process.run(words, timeout=_PROBE)
    if not result.ok:
        raise errors.make_environment_error(
            f"version {version} in {releases.directory_of(version, where)} cannot be used: its"
            f" daemons cannot be loaded: {' | '.join(result.stderr.splitlines()[-1:])}",
        )
    output = result.stdout.strip()
    if not output.startswith(f"{version}."):
        raise errors.make_environment_error(
            f"what is in {releases.directory_of(version, where)} is of version {output:.40}",
        )


@contextlib.contextmanager
def _keep_master_away(where: Paths, master: Sequence[str]) -> Iterator[None]:
    """Keep a master daemon from being started meanwhile, by the watcher for example."""
    if not master:
        yield
        return
    pid_file = daemon.PidFile(where.pid_file(constants.MASTERD))
    pid_file.acquire()
    try:
        yield
    finally:
        pid_file.release()


def _start_again(names: Sequence[str], where: Paths) -> None:
    for name in names:
        services.stop(name, where)
        try:
            services.start(name, where)
        except errors.GanetiError as err:
            raise errors.OpExecError(f"{name} does not start: {errors.text(err)}") from err


def _go_back(where: Paths, former: Version, names: Sequence[str], take_back: Undo) -> None:
    """Use the former version again. Raises OpExecError when that does not run either."""
    for name in reversed(names):
        if services.ALL[name].of_master:
            services.stop(name, where)
    take_back()
    releases.use(former, where)
    _start_again(names, where)
