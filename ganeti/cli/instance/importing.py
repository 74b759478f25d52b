"""gnt-instance: make instances of guests of other virtualisation products."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ganeti import errors, paths
from ganeti.base import files
from ganeti.base.json_types import JsonObject
from ganeti.base.text import plural
from ganeti.cli import jobs, notices
from ganeti.cli import options as o
from ganeti.cli.command import Args, Call
from ganeti.cli.fields import override
from ganeti.cli.instance import creation, devices
from ganeti.cli.option import switch, value, values_of
from ganeti.cli.programs import INSTANCE

if TYPE_CHECKING:
    from ganeti.foreign.mapping import Mapped
    from ganeti.foreign.opening import Opened

_NEW_MACS = switch("--new-macs", dest="new_macs", help="Give the NICs new MAC addresses")
_NETWORKS = values_of(
    "--map-network",
    dest="map_network",
    metavar="<source>=link:<link>|<source>=network:<network>",
    help="Where to connect NICs that were connected to a bridge or network; by default all are"
    " connected as new NICs of the cluster",
)
_DIRECTORY = value(
    "--disk-dir",
    dest="disk_dir",
    metavar="<directory>",
    help="Directory with the files of the disks; by default that of the file",
)


@INSTANCE.command(
    "import",
    Args("file"),
    Args("host", least=0),
    op=creation.OP,
    without=(*creation.WITHOUT, "commit", "force_variant", "forthcoming", "image", "no_install"),
    names={
        **{key: name for key, name in creation.NAMES.items() if key not in ("no_install", "size")},
        "disks": override(
            "--disk",
            kind="identkeyval",
            metavar="<index>:<key>=<value>,...",
            help="More about a disk of the guest, as in 0:vg=fast",
            take=list,
        ),
    },
    new=True,
    options=(_NEW_MACS, _NETWORKS, _DIRECTORY, creation.EXTRAS[0], *o.JOB_OPTIONS),
    usage="[-n <node>[:<node>]] [--dry-run] <file> [<host>]",
)
def import_(call: Call) -> None:
    """Create an instance from a guest of another virtualisation product, and start it.

    The file is a domain of libvirt in XML, an OVF or OVA, a backup of Proxmox VE (VMA, also
    compressed), or only a disk, which needs a name for the instance. Memory, processors, disks,
    NICs and firmware are taken from it unless options say otherwise. The command prints what the
    instance will be and what is not taken over. With --dry-run nothing else is done.
    """
    from ganeti.foreign import opening

    opts = call.opts
    directory = Path(opts.disk_dir) if opts.disk_dir else None
    with contextlib.closing(opening.open_guest(Path(call.args[0]), directory)) as opened:
        name = _choose_name(call, opened)
        mapped = _map(call, opened)
        wanted = _make_parameters(call, name, opened, mapped)
        _show(call.args[0], opened, mapped, wanted)
        # The master refuses what it can before anything is copied.
        check = jobs.build(call, creation.OP, **{**wanted, "dry_run": True})
        jobs.wait(call.client, call.client.submit_job([check]), quiet=True)
        if opts.dry_run:
            return
        with _make_uploads(opened) as uploads:
            sources = [
                {"source": upload.name, "format": format}
                for upload, format in zip(uploads, opened.formats(), strict=True)
            ]
            jobs.run_op(call, creation.OP, **{**wanted, "disk_sources": sources})


def _choose_name(call: Call, opened: Opened) -> str:
    given = call.args[1] if len(call.args) > 1 else opened.guest.name
    if not given:
        raise errors.make_invalid_error(
            "The file does not say what the guest is called; give a name after the file"
        )
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", given):
        raise errors.make_invalid_error(
            f"'{given[:80]}' cannot be the name of an instance; give a name after the file"
        )
    return given


def _map(call: Call, opened: Opened) -> Mapped:
    from ganeti.foreign import mapping

    opts = call.opts
    given = call.spec.parameters(call)["hypervisor"]
    hypervisor = given[0] if given else str(call.client.query_cluster_info()["default_hypervisor"])
    return mapping.map_guest(
        opened.guest,
        hypervisor=hypervisor,
        networks=dict(mapping.read_network(text) for text in opts.map_network),
        keep_macs=not opts.new_macs,
    )


def _make_parameters(call: Call, name: str, opened: Opened, mapped: Mapped) -> JsonObject:
    """Parameters of OP_INSTANCE_CREATE; what options give comes before what the guest has."""
    from ganeti.foreign import mapping

    opts = call.opts
    given = call.spec.parameters(call)
    primary, secondary = given["pnode"] or (None, None)
    hypervisor, hvparams = given["hypervisor"] or (None, {})
    backend = {**mapped.beparams, **(given["beparams"] or {})}
    if backend.get("minmem", 0) > backend.get("maxmem", backend.get("minmem", 0)):
        backend["minmem"] = backend["maxmem"]
    own_nics = opts.nics or opts.no_nics or not opened.guest.nics
    return given | {
        "mode": "create",
        "instance_name": name,
        "disks": mapping.map_sizes(
            opened.guest, opened.sizes, devices.given_disks(opts.disks or [])
        ),
        "nics": devices.new_nics(opts) if own_nics else mapped.nics,
        "hypervisor": hypervisor,
        "hvparams": {**mapped.hvparams, **hvparams},
        "beparams": backend,
        "pnode": primary,
        "snode": secondary,
        # only what the dry run needs to know: that the disks get content
        "disk_sources": [{"source": "dry-run"} for _disk in opened.guest.disks],
    }


def _show(path: str, opened: Opened, mapped: Mapped, wanted: JsonObject) -> None:
    guest = opened.guest
    print(f"Instance {wanted['instance_name']} from {path} ({opened.kind})")
    for word, key in (("backend parameters", "beparams"), ("hypervisor parameters", "hvparams")):
        text = ", ".join(f"{name}={value}" for name, value in wanted[key].items())
        print(f"  {word}: {text or 'those of the cluster'}")
    for index, (disk, keys) in enumerate(zip(guest.disks, wanted["disks"], strict=True)):
        more = "".join(f", {name}={value}" for name, value in keys.items() if name != "size")
        origin = disk.file if disk.label in ("0", disk.file) else f"{disk.file} ({disk.label})"
        print(f"  disk {index}: {keys['size']} MiB from {origin}{more}")
    for index, keys in enumerate(wanted["nics"]):
        text = ", ".join(f"{name}={value}" for name, value in keys.items())
        source = guest.nics[index].source if wanted["nics"] is mapped.nics else ""
        was = f" (was connected to {source})" if source else ""
        print(f"  NIC {index}: {text or 'as new NICs of the cluster'}{was}")
    if mapped.left_out:
        print("Not taken over:")
        for text in mapped.left_out:
            print(f"  - {text}")


@contextlib.contextmanager
def _make_uploads(opened: Opened) -> Iterator[list[Path]]:
    """Files for the master with the content of each disk; of a job that failed none stays.

    Until all are complete they have no names, so nothing is left of a command that is killed.

    Raises:
        OpPrereqError: a file is damaged, or there is no room for the copy.
    """
    directory = paths.current().image_uploads
    done: list[Path] = []
    try:
        with contextlib.ExitStack() as stack:
            files.ensure_dir(directory.parent, 0o700)
            files.ensure_dir(directory, 0o700)
            targets = []
            for disk in opened.guest.disks:
                target = os.open(directory, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, 0o600)
                stack.callback(os.close, target)
                targets.append((disk.file, target))
            notices.say(f"Copying {plural(len(targets), 'disk')} to {directory}...")
            opened.copy([fd for _name, fd in targets])
            for name, fd in targets:
                done.append(_name_upload(directory, name, fd))
    except OSError as err:
        _remove(done)
        room = "; make room there" if err.errno == errno.ENOSPC else ""
        raise errors.make_environment_error(
            f"Cannot copy the disks to {directory}: {err.strerror}{room}"
        ) from err
    try:
        yield done
    except errors.GanetiError:
        _remove(done)
        raise


def _name_upload(directory: Path, name: str, fd: int) -> Path:
    kept = re.sub(r"[^A-Za-z0-9._+-]", "", name)
    target = directory / f"{secrets.token_hex(4)}-{kept[:120]}"
    # Only with a directory Python calls linkat(2), which follows the link in /proc.
    os.link(f"/proc/self/fd/{fd}", target, src_dir_fd=fd, follow_symlinks=True)
    return target


def _remove(uploads: Sequence[Path]) -> None:
    for path in uploads:
        path.unlink(missing_ok=True)
