"""Options that follow from fields of opcodes."""

from __future__ import annotations

import pytest

from ganeti import errors
from ganeti.cli import fields, generated
from ganeti.cli.command import Call, Program
from ganeti.cli.derive import facts
from ganeti.cli.fields import Override, override
from ganeti.cli.option import Option
from ganeti.cli.parser import UsageError, parse
from ganeti.config.differences import KINDS
from ganeti.model import ipolicy
from ganeti.model.ipolicy import PolicyKeys


def option(
    op_id: str, field: str, exception: Override | None = None, *, new: bool = False
) -> Option:
    names = {} if exception is None else {field: exception}
    (found,) = fields.options(op_id, without=(), only=(field,), names=names, new=new)
    return found


def test_a_switch_is_called_like_its_field() -> None:
    found = option("OP_GROUP_EVACUATE", "early_release")
    assert (found.flags, found.default, found.const) == (("--early-release",), False, True)


def test_what_is_true_by_default_is_switched_off() -> None:
    found = option("OP_INSTANCE_GROW_DISK", "wait_for_sync")
    assert (found.flags, found.default, found.const) == (("--no-wait-for-sync",), True, False)
    assert found.help == "Do not wait until the disks are in sync"


def test_what_may_be_unset_is_yes_or_no() -> None:
    found = option("OP_NODE_SET_PARAMS", "vm_capable")
    assert parse((found,), ["--vm-capable", "no"])[0].vm_capable is False
    assert parse((found,), [])[0].vm_capable is None


def test_words_of_an_enumeration_are_choices() -> None:
    found = option("OP_GROUP_ADD", "alloc_policy")
    with pytest.raises(UsageError, match="choose from last_resort, preferred, unallocable"):
        parse((found,), ["--alloc-policy", "never"])


def test_numbers_and_their_defaults() -> None:
    found = option("OP_INSTANCE_REMOVE", "shutdown_timeout")
    assert parse((found,), [])[0].shutdown_timeout == 120
    with pytest.raises(UsageError, match="'soon' is not an integer"):
        parse((found,), ["--shutdown-timeout", "soon"])


def test_a_key_taken_back_is_sent_unless_something_is_created() -> None:
    text = {"a": "1", "b": None}
    change = option("OP_GROUP_SET_PARAMS", "ndparams").take
    create = option("OP_GROUP_ADD", "ndparams", new=True).take
    assert change is not None
    assert create is not None
    assert change(text) == {"a": "1", "b": "default"}
    assert create(text) == {"a": "1"}


def test_secret_values_are_kept_out_of_the_log() -> None:
    assert option("OP_INSTANCE_REINSTALL", "osparams_secret").hidden_value


def test_an_exception_of_the_command_goes_before_that_of_all() -> None:
    assert option("OP_GROUP_EVACUATE", "target_groups").flags == ("--to",)
    own = override("--into", append=True, metavar="<group>")
    found = option("OP_GROUP_EVACUATE", "target_groups", own)
    assert parse((found,), ["--into", "a", "--into", "b"])[0].target_groups == ["a", "b"]


def sides() -> tuple[Option, ...]:
    exception = override(
        each={
            "replace_on_primary": ("-p", "--on-primary", "Replace those on the primary node"),
            "replace_auto": ("-a", "--auto", "Replace faulty disks"),
        }
    )
    return tuple(
        fields.options(
            "OP_INSTANCE_REPLACE_DISKS",
            without=(),
            only=("mode",),
            names={"mode": exception},
            new=False,
        )
    )


def test_values_of_a_field_can_be_switches() -> None:
    made = sides()
    assert [item.flags for item in made] == [("-p", "--on-primary"), ("-a", "--auto")]
    take = made[0].take
    assert take is not None
    assert take(parse(made, ["--auto", "-a"])[0].mode) == "replace_auto"
    with pytest.raises(errors.OpPrereqError, match="Give only one of --on-primary and --auto"):
        take(parse(made, ["-a", "-p"])[0].mode)


def test_a_switch_for_a_value_that_the_field_cannot_have_is_an_error() -> None:
    with pytest.raises(ValueError, match="reboot_type cannot be 'gentle'"):
        option("OP_INSTANCE_REBOOT", "reboot_type", override(each={"gentle": ("--gentle", "So")}))


def test_fields_of_other_requests_are_options_but_not_parameters() -> None:
    program = Program("gnt-test", "Test.")

    @program.command(
        "change",
        op="OP_GROUP_RENAME",
        also={"HistoryFilter": ("limit",), "OP_NODE_SET_PARAMS": ("auto_promote",)},
    )
    def change(call: Call) -> None:
        """Change something."""

    command = program.commands["change"]
    opts, args = parse(command.all_options, ["--limit", "3", "--auto-promote"])
    assert (opts.limit, opts.auto_promote) == (3, True)
    call = Call("gnt-test", "change", opts, args, command)
    assert set(command.parameters(call)) == {"group_name", "new_name"}


def test_kinds_of_the_history_are_those_that_it_knows() -> None:
    (found,) = (row[3] for row in facts("HistoryFilter")[1] if row[0] == "kind")
    assert set(found) == set(KINDS.values())


def test_keys_of_the_policy_are_those_of_the_builtin_one() -> None:
    names = {name.replace("_", "-") for name in PolicyKeys.__struct_fields__}
    assert names == set(ipolicy.defaults())


def test_uuids_beside_names_and_the_policy_are_no_options() -> None:
    found = fields.options("OP_GROUP_SET_PARAMS", without=(), only=None, names={}, new=False)
    assert not {"ipolicy"}.intersection(item.dest for item in found)
    moved = fields.options("OP_INSTANCE_MOVE", without=(), only=None, names={}, new=False)
    assert not [item.dest for item in moved if item.dest.endswith("_uuid")]


def test_an_opcode_that_is_not_in_the_table_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    op_id = "OP_GROUP_EVACUATE"
    known = fields.find_fields(op_id)
    monkeypatch.delitem(generated.OPCODES, op_id)
    assert fields.find_fields(op_id) == known == facts(op_id)
