"""Options of instances as parameters of opcodes, and the question before a risky step."""

from __future__ import annotations

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.cli import notices, selection
from ganeti.cli.command import Call
from ganeti.cli.failures import Exit
from ganeti.cli.values import IdentKeyVals, KeyVals


def backend(given: KeyVals, *, keep_resets: bool) -> JsonObject:
    """Back-end parameters as numbers; ``memory`` is spelled out as ``minmem`` and ``maxmem``.

    A key taken back (``-maxmem`` or the value ``default``) has the value ``default``, or is left
    out without ``keep_resets``.

    Raises:
        ParameterError: an unknown name or a value that cannot be used.
    """
    if not given:
        return {}
    from ganeti.model import params

    kept: JsonObject = {}
    for key, found in given.items():
        if found is None or found == params.VALUE_DEFAULT:
            name = "maxmem" if key == "memory" else key
            params.refuse_unknown(params.BackendParams, [name], "backend")
            if keep_resets:
                kept[key] = params.VALUE_DEFAULT
        else:
            kept[key] = _backend_value(key, found)
    return params.expand_backend(kept)


def _backend_value(key: str, found: str | bool) -> object:
    """One back-end parameter as a number or truth value; the error names it as it was given."""
    import msgspec

    from ganeti.model import marks, params

    name = "maxmem" if key == "memory" else key
    kinds = {info.name: info.type for info in msgspec.structs.fields(params.BackendParams)}
    is_number = marks.plain(kinds.get(name, bool)) is int
    if is_number and isinstance(found, bool):
        raise errors.ParameterError(f"backend parameter '{key}' needs a value, as in {key}=1")
    try:
        return params.check(params.BackendParams, {name: found}, "backend")[name]
    except errors.ParameterError:
        if not is_number:
            raise
        wanted = "a size such as 2G" if name in ("maxmem", "minmem") else "a number"
        raise errors.ParameterError(
            f"backend parameter '{key}' cannot be '{found}': expected {wanted}"
        ) from None


def refuse_defaults(given: KeyVals, what: str) -> JsonObject:
    """Parameters that hold for one start: nothing can be taken back to a default."""
    for key, found in given.items():
        if found is None:
            raise errors.make_invalid_error(
                f"{what} parameter '{key}' cannot be taken back for one start only; give a value,"
                " or use gnt-instance modify",
            )
    return dict(given)


def hypervisor(given: IdentKeyVals) -> tuple[str, JsonObject]:
    """Name and parameters of ``-H <hypervisor>:<key>=<value>,...``.

    Raises:
        OpPrereqError: no name at the front, or a name with a prefix that removes.
    """
    name, keys = given
    if not isinstance(keys, dict) or not name or "=" in name:
        raise errors.make_invalid_error(
            f"-H takes <hypervisor>:<key>=<value>,..., as in kvm:acpi=true, not '{name}'"
        )
    return name, {key: found for key, found in keys.items() if found is not None}


def refuse_several(**given: bool) -> None:
    """Refuse options that exclude each other; keywords are their names with underscores.

    Raises:
        OpPrereqError: more than one was given.
    """
    found = [f"--{name.replace('_', '-')}" for name, is_given in given.items() if is_given]
    if len(found) > 1:
        raise errors.make_invalid_error(f"Give only one of {' and '.join(found)}")


def ask_first(call: Call, name: str, question: str) -> None:
    """Unless ``-f`` was given, ask whether to go on with an instance, which must exist.

    Raises:
        Exit: the answer is no, or there is nobody to ask.
        OpPrereqError: there is no such instance.
    """
    if call.opts.force:
        return
    selection.find_instances(call.client, [name])
    if not notices.confirm(question, option="-f"):
        raise Exit(1)
