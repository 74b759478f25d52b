"""Name or rename a reservation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ganeti import errors
from ganeti.config.changes import Draft
from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.model.disk import Disk
from ganeti.model.instance import Instance
from ganeti.opcodes.instance import OpInstanceRename
from ganeti.ops.operation import Finding, FindingOperation, PlannedOperation
from ganeti.ops.planning import checks
from ganeti.ops.steps import host_names
from ganeti.ops.targets import instance as instance_target
from ganeti.storage.registry import TEMPLATES


@dataclass(frozen=True)
class _Found:
    new_name: str
    #: as it was before its lock was granted
    before: Instance


class ReservationRename(
    FindingOperation[OpInstanceRename, _Found, str],
    PlannedOperation[OpInstanceRename, Instance, str],
):
    """Disks that will be in a directory of their instance get one of the new name."""

    def find(self) -> Finding[_Found]:
        given = checks.host_name(self.op.new_name, "an instance")
        new_name = host_names.choose_name(
            given, name_check=self.op.name_check, ip_check=self.op.ip_check
        )
        before = self.ctx.config.instance(self.op.instance_uuid or self.op.instance_name)
        # one request for both names: locks of one level are taken together
        yield Need(LockLevel.INSTANCE, [before.handle], new=[new_name])
        return _Found(new_name, before)

    def decide(self) -> Instance:
        """The reservation, still as it was."""
        config, before = self.ctx.config, self.found.before
        handle, found = before.handle, config.instances.get(before.uuid)
        if found is None or not found.forthcoming or found.handle != handle:
            raise errors.make_unknown_error(
                f"reservation '{handle}' was removed, renamed or created while this job"
                " waited for it"
            )
        if found.interrupted:
            instance_target.check_real(config, found)
        if config.has_instance_name(self.found.new_name):
            raise errors.make_exists_error(f"instance '{self.found.new_name}' exists already")
        return found

    def run(self) -> str:
        ctx = self.ctx

        def edit(draft: Draft) -> None:
            for uuid in self.plan.disks:
                disk = draft.config.disks.get(uuid)
                if disk is not None and _is_in_directory(disk):
                    draft.update(disk, logical_id=_move_path(disk, self.found.new_name))
            draft.update(self.plan, name=self.found.new_name)

        ctx.store.change("reservation-rename", ctx.author, edit)
        job_id = ctx.job.job_id
        ctx.locks.keep(job_id, LockLevel.INSTANCE, [self.found.new_name])
        ctx.locks.remove(job_id, LockLevel.INSTANCE, self.found.before.handle)
        return self.found.new_name


def _is_in_directory(disk: Disk) -> bool:
    return bool(
        disk.dev_type is not None
        and disk.logical_id
        and TEMPLATES.get(disk.dev_type).traits.file_based
    )


def _move_path(disk: Disk, name: str) -> tuple[str, str]:
    driver, path = disk.logical_id
    return driver, str(Path(path).parent.with_name(name) / Path(path).name)
