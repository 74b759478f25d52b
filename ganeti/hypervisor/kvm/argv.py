"""The command line of QEMU for a guest; pure, so that recorded cases can pin it down."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

import msgspec

from ganeti.hypervisor.kvm import devices, display
from ganeti.hypervisor.kvm.accel import Accelerator
from ganeti.hypervisor.kvm.devices import Drive, Nic, Processor, escape
from ganeti.hypervisor.kvm.params import KvmParams
from ganeti.hypervisor.kvm.places import Places
from ganeti.model.ids import InstanceUuid

#: First versions of QEMU that know ``-run-with chroot=`` and ``-run-with user=``.
_RUN_WITH_CHROOT = (8, 1)
_RUN_WITH_USER = (9, 1)


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """The QEMU of this node and its abilities."""

    qemu: str
    accelerator: Accelerator
    #: versioned name, so that a guest keeps its machine when it moves
    default_machine: str
    version: tuple[int, ...] = ()
    #: short name of a machine -> versioned one
    aliases: dict[str, str] = {}
    #: whether QEMU can give up system calls that it does not need
    sandbox: bool = False


class Files(msgspec.Struct, frozen=True, kw_only=True):
    """The files of QEMU.

    Sockets are names in the directory that QEMU is started in: their full path may be longer than
    the 107 bytes of a socket address.
    """

    pid_file: str
    qmp: str
    serial: str
    serial_log: str
    agent: str
    #: QEMU's own messages, which have no other place once it is in the background
    log: str
    #: journal without its suffix, empty: none
    events: str = ""
    chroot: str = ""
    #: certificate with key, and its authority, for SPICE over TLS
    spice_cert: str = ""
    spice_ca: str = ""
    #: disk for cloud-init, empty: none
    seed: str = ""
    #: firmware and variables of the instance, empty: QEMU's BIOS
    uefi_code: str = ""
    uefi_variables: str = ""


class Guest(msgspec.Struct, frozen=True, kw_only=True):
    """The guest to be started."""

    name: str
    uuid: InstanceUuid
    #: MiB
    memory: int
    vcpus: int
    #: those of them that were added since its first start
    processors: tuple[Processor, ...] = ()
    params: KvmParams
    drives: tuple[Drive, ...] = ()
    nics: tuple[Nic, ...] = ()
    #: TCP port of the display
    port: int | None = None
    #: address of the interface that vnc_bind_address or spice_bind names, else what that says
    display_address: str = ""
    #: do not run before the control socket says so
    paused: bool = False
    #: wait for a running guest from another node
    incoming: bool = False
    #: user that runs QEMU, empty: root
    user: str = ""
    #: machine type with its version, empty: that of the parameters
    machine: str = ""


def replace_late_values(
    guest: Guest,
    *,
    paused: bool,
    user: str,
    machine: str,
    incoming: bool,
    processors: tuple[Processor, ...] = (),
) -> Guest:
    """The guest with what is known only at the start."""
    return msgspec.structs.replace(
        guest,
        paused=paused,
        user=user,
        machine=machine,
        incoming=incoming,
        processors=processors,
    )


def machine(params: KvmParams, node: Node) -> str:
    """Machine type with its options, pinned to a version."""
    name, comma, more = (params.machine_version or node.default_machine).partition(",")
    return node.aliases.get(name, name) + comma + more


def places(params: KvmParams, machine: str, occupied: Mapping[str, str] | None = None) -> Places:
    """Places on a machine, of which some may be occupied."""
    return Places(
        params.kvm_pci_reservations,
        q35="q35" in machine,
        scsi_controller=params.scsi_controller_type,
        occupied=occupied,
    )


def build(guest: Guest, node: Node, files: Files, where: Places | None = None) -> list[str]:
    """The argument list; ``where`` tells, and afterwards has, the places of the devices.

    QEMU goes to the background by itself when everything is set up (``-daemonize``), so errors are
    on its stderr and its exit status tells.

    Raises:
        HypervisorError: the devices do not fit, or the port of a display is missing.
    """
    params = guest.params
    kind = guest.machine or machine(params, node)
    where = places(params, kind) if where is None else where
    screen = display.Screen(
        name=guest.name,
        port=guest.port,
        address=guest.display_address,
        spice_cert=files.spice_cert,
        spice_ca=files.spice_ca,
    )
    boot_disk = params.boot_order == "disk" and not params.kernel_path
    parts = (
        _base(guest, node, files, kind),
        _processors(guest),
        _firmware(params, files),
        _kernel(params),
        _control(files),
        _serial(params, files),
        _ports(params, files),
        display.arguments(params, screen),
        _input(params),
        ("-device", "virtio-balloon-pci,id=balloon"),
        (word for port in where.root_ports() for word in ("-device", port)),
        devices.nic_arguments(guest.nics, params, where),
        devices.disk_arguments(guest.drives, params, where, boot=boot_disk),
        devices.image_arguments(params, where),
        devices.seed_arguments(files.seed, params, where),
        shlex.split(params.kvm_extra),
    )
    return [argument for part in parts for argument in part]


def _base(guest: Guest, node: Node, files: Files, machine: str) -> Iterator[str]:
    params = guest.params
    yield from (node.qemu, "-name", escape(guest.name), "-uuid", guest.uuid)
    yield from ("-nodefaults", "-no-user-config", "-daemonize", "-pidfile", files.pid_file)
    # QEMU opens the file only when something is logged; pages are what only user mode logs.
    yield from ("-D", files.log, "-d", "page")
    acpi = "" if params.acpi else ",acpi=off"
    # The description that QEMU would send after the end of a migration is left out: so the last
    # byte of the stream is the one that the target must have, and a source that could not send
    # it knows that the target does not run the guest.
    machine += ",suppress-vmdesc=on"
    if params.firmware == "uefi-secure":
        machine += ",smm=on"
    yield from ("-machine", f"{machine}{acpi}", "-accel", node.accelerator)
    yield from ("-m", str(guest.memory))
    if params.mem_path:
        yield from ("-mem-path", params.mem_path, "-mem-prealloc")
    yield from ("-rtc", "base=localtime" if params.use_localtime else "base=utc")
    if params.reboot_behavior == "exit":
        yield "-no-reboot"
    yield from _restrict(guest, node, files)
    if guest.incoming:
        yield from ("-incoming", "defer")
    # A guest that has arrived waits until it is on record there: then no crash can bring its old
    # self at the source back to disks that it has written to since. After a switch to post-copy
    # it must run, or it would be paused until all of its memory has come.
    if guest.paused or (guest.incoming and "postcopy-ram" not in params.migration_caps):
        yield "-S"


def _restrict(guest: Guest, node: Node, files: Files) -> Iterator[str]:
    """Less privilege once everything is open; QEMU 8.1 and 9.1 renamed the options.

    The sandbox has to allow what ``-daemonize`` and ``-runas`` do, which come after it.
    """
    user = guest.user
    if node.sandbox and "-sandbox" not in shlex.split(guest.params.kvm_extra):
        yield from ("-sandbox", "on,obsolete=deny,resourcecontrol=deny")
    new: list[str] = []
    if user and node.version >= _RUN_WITH_USER:
        new.append(f"user={escape(user)}")
    elif user:
        yield from ("-runas", user)
    if files.chroot and node.version >= _RUN_WITH_CHROOT:
        new.append(f"chroot={escape(files.chroot)}")
    elif files.chroot:
        yield from ("-chroot", files.chroot)
    if new:
        yield from ("-run-with", ",".join(new))


def _processors(guest: Guest) -> Iterator[str]:
    params = guest.params
    topology = (
        ("sockets", params.cpu_sockets),
        ("cores", params.cpu_cores),
        ("threads", params.cpu_threads),
    )
    # Room for more is a part of the machine, and the number that it is started with has a say in
    # its devices (queues of disks): what came later is added here too, as it was at the source.
    first = guest.vcpus - len(guest.processors)
    words = [str(first)]
    if params.max_vcpus > first:
        words.append(f"maxcpus={params.max_vcpus}")
    words += [f"{name}={count}" for name, count in topology if count]
    yield from ("-smp", ",".join(words))
    if params.cpu_type:
        # Not escaped: flags follow the model after commas.
        yield from ("-cpu", params.cpu_type)
    for processor in guest.processors:
        device = {key: str(value) for key, value in processor.items()}
        yield from ("-device", devices.options(device))


def _firmware(params: KvmParams, files: Files) -> Iterator[str]:
    if not files.uefi_code:
        return
    if params.firmware == "uefi-secure":
        # Only code in system management mode may write the variables.
        yield from ("-global", "driver=cfi.pflash01,property=secure,value=on")
        yield from ("-global", "ICH9-LPC.disable_s3=1")
    for unit, path, option in (
        (0, files.uefi_code, ",readonly=on"),
        (1, files.uefi_variables, ""),
    ):
        yield from ("-drive", f"if=pflash,format=raw,unit={unit},file={escape(path)}{option}")


def _kernel(params: KvmParams) -> Iterator[str]:
    if not params.kernel_path:
        return
    yield from ("-kernel", params.kernel_path)
    if params.initrd_path:
        yield from ("-initrd", params.initrd_path)
    words = [f"root={params.root_path}", params.kernel_args]
    if params.serial_console:
        words.append(f"console=ttyS0,{params.serial_speed}")
    yield from ("-append", " ".join(word for word in words if word))


def _control(files: Files) -> Iterator[str]:
    """The control socket, and the journal of events.

    The journal is a second monitor on a pair of files (a pipe in QEMU's words, which takes files as
    well): from the first it reads the one command that switches events on, to the second it writes
    them. So QEMU itself notes why a guest ended, and nobody has to listen.
    """
    yield from ("-chardev", f"socket,id=qmp,path={escape(files.qmp)},server=on,wait=off")
    yield from ("-mon", "chardev=qmp,mode=control")
    if files.events:
        yield from ("-chardev", f"pipe,id=events,path={escape(files.events)}")
        yield from ("-mon", "chardev=events,mode=control")


def _serial(params: KvmParams, files: Files) -> Iterator[str]:
    """A socket to type into, and a log of everything that the guest ever printed."""
    if not params.serial_console:
        return
    yield from (
        "-chardev",
        f"socket,id=serial,path={escape(files.serial)},server=on,wait=off,"
        f"logfile={escape(files.serial_log)},logappend=on",
    )
    yield from ("-serial", "chardev:serial")


def _ports(params: KvmParams, files: Files) -> Iterator[str]:
    """Ports for programs in the guest: its agent, and that of SPICE."""
    spice = bool(params.spice_bind and params.spice_use_vdagent)
    if params.use_guest_agent or spice:
        yield from ("-device", "virtio-serial-pci,id=ports")
    if params.use_guest_agent:
        yield from ("-chardev", f"socket,id=agent,path={escape(files.agent)},server=on,wait=off")
        yield from ("-device", "virtserialport,chardev=agent,name=org.qemu.guest_agent.0")
    if spice:
        yield from ("-chardev", "spicevmc,id=vdagent,name=vdagent")
        yield from ("-device", "virtserialport,chardev=vdagent,name=com.redhat.spice.0")


def _input(params: KvmParams) -> Iterator[str]:
    usb = [name for name in params.usb_devices.split(",") if name]
    if params.usb_mouse:
        usb.insert(0, params.usb_mouse)
    if usb:
        yield "-usb"
    for name in usb:
        yield from ("-usbdevice", name)
    if params.soundhw:
        yield from ("-audio", f"driver=none,model={escape(params.soundhw)}")
