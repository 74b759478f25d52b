"""Modules of the kernel, DRBD and what drivers of hypervisors ask for."""

from __future__ import annotations

from collections.abc import Iterator

from ganeti.doctor.facts import Kernel, Module, Wish
from ganeti.doctor.findings import Finding, fail, ok, warn

#: Modules by the disk template or hypervisor that needs them; the first of each group will do.
_TEMPLATES = {"plain": ("dm_mod",), "drbd": ("dm_mod", "drbd")}
_HYPERVISORS = {"kvm": ("kvm", "tun", "vhost_net"), "lxc": (), "fake": ()}
#: Those without which things work, but worse: what is lost.
_OPTIONAL = {
    "kvm": "guests run many times slower, in emulation",
    "vhost_net": "NICs of guests are slower",
}


def check(facts: Kernel, wish: Wish) -> Iterator[Finding]:
    yield from _modules(facts, wish)
    yield from drbd(facts, wish)
    yield from hypervisors(facts)


def hypervisors(facts: Kernel) -> Iterator[Finding]:
    """The answers of the drivers of the wanted hypervisors."""
    for name, problem in facts.hypervisors.items():
        if problem:
            yield fail("hypervisor", f"{name} cannot be used here", problem)
        else:
            yield ok("hypervisor", name)


def _modules(facts: Kernel, wish: Wish) -> Iterator[Finding]:
    wanted: dict[str, str] = {}
    hypervisors = ("kvm",) if wish.hypervisors is None else tuple(wish.hypervisors)
    templates = ("plain", "drbd") if wish.templates is None else wish.templates
    for user in (*hypervisors, *templates):
        for module in _HYPERVISORS.get(user, ()) or _TEMPLATES.get(user, ()):
            wanted.setdefault(module, user)
    known = wish.hypervisors is not None and wish.templates is not None
    good = []
    for module, user in wanted.items():
        if module == "drbd" and known:
            continue  # with its version
        state = facts.modules.get(module, Module.MISSING)
        if state is Module.LOADED:
            good.append(module)
            continue
        text, remedy = f"module {module} is not loaded", _load(module)
        if state is Module.MISSING:
            text = f"kernel {facts.release} has no module {module}"
            remedy = _find(module, facts)
        if module in _OPTIONAL:
            yield warn("modules", f"{text}; {_OPTIONAL[module]}", remedy)
        elif not known:
            yield warn("modules", f"{text}, which {user} needs", remedy)
        elif state is Module.MISSING:
            yield fail("modules", f"{text}, which {user} needs", remedy)
        else:
            yield warn("modules", f"{text}, which {user} needs", remedy)
    if good:
        yield ok("modules", ", ".join(good))


def _load(module: str) -> str:
    if module == "drbd":
        return (
            "echo options drbd minor_count=128 usermode_helper=/bin/true"
            " > /etc/modprobe.d/drbd.conf; echo drbd >> /etc/modules; modprobe drbd"
        )
    return f"modprobe {module}; echo {module} >> /etc/modules"


def _find(module: str, facts: Kernel) -> str:
    if module == "kvm" and not facts.virtualization:
        return "switch virtualization (VT-x, AMD-V) on in the firmware"
    return "boot a kernel that has it, such as that of the package linux-image-amd64"


def drbd(facts: Kernel, wish: Wish) -> Iterator[Finding]:
    """With template drbd the module must be loaded, be of a handled version and call the helper."""
    if "drbd" not in (wish.templates or ()):
        return
    if facts.drbd is None:
        missing = facts.modules.get("drbd", Module.MISSING) is Module.MISSING
        yield fail(
            "drbd",
            "the DRBD module is not loaded on this node",
            _find("drbd", facts) if missing else _load("drbd"),
        )
        return
    if facts.drbd_problem:
        yield fail("drbd", facts.drbd_problem, "boot a kernel with that version")
        return
    if wish.helper and facts.helper != wish.helper:
        yield fail(
            "drbd",
            f"the DRBD module of this node has the user-mode helper {facts.helper}, not"
            f" {wish.helper}",
            f"load it with usermode_helper={wish.helper}, or choose another with"
            " --drbd-usermode-helper",
        )
        return
    yield ok("drbd", f"version {facts.drbd}, user-mode helper {facts.helper}")
