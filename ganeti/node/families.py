"""All families of node calls of one node daemon, each with what it needs of the others."""

from __future__ import annotations

from ganeti.node.backup_desk import Desk
from ganeti.node.backup_files import BackupFiles
from ganeti.node.backups import Backups
from ganeti.node.consoles import Consoles
from ganeti.node.context import NodeContext
from ganeti.node.conversion import Conversion
from ganeti.node.copy_guests import CopyGuests
from ganeti.node.copying import Copies
from ganeti.node.crypto import Crypto
from ganeti.node.disk_content import DiskContent
from ganeti.node.disk_states import DiskStates
from ganeti.node.disks import Disks
from ganeti.node.end_report import EndReport
from ganeti.node.end_watch import EndWatch
from ganeti.node.exports import Exports
from ganeti.node.external import External
from ganeti.node.files import Files
from ganeti.node.guest_ends import GuestEnds
from ganeti.node.guest_os import GuestOs
from ganeti.node.helper_guests import HelperGuests
from ganeti.node.holds import Holds
from ganeti.node.hooks import Hooks
from ganeti.node.hotplug import Hotplug
from ganeti.node.images import Images
from ganeti.node.impexp import Impexp
from ganeti.node.instances import Instances
from ganeti.node.job_logs import JobLogs
from ganeti.node.lease import NodeLease
from ganeti.node.master_ip import MasterIp
from ganeti.node.metadata import Metadata
from ganeti.node.migration import Migration
from ganeti.node.mirrors import Mirrors
from ganeti.node.replica import Replica
from ganeti.node.run_rights import RunRights
from ganeti.node.sampler import Sampler
from ganeti.node.samples import NodeSamples
from ganeti.node.ssh import Ssh
from ganeti.node.standby import Standby
from ganeti.node.storage import Storage
from ganeti.node.switches import Switches
from ganeti.node.system import System
from ganeti.node.transfer import Transfer
from ganeti.node.verify import Verifier
from ganeti.node.versions import Versions
from ganeti.node.x509 import X509


class Families:
    """The objects that answer the calls of one node.

    :class:`ganeti.rpc.server.RpcApp` finds the one for a call.
    """

    def __init__(self, context: NodeContext) -> None:
        system = System(context)
        #: to be started when this node daemon serves calls
        self.standby = Standby(context)
        replica = Replica(context, self.standby)
        hooks = Hooks(context)
        disks = Disks(context)
        copies = Copies(context)
        storage = Storage(context, disks)
        #: to be started when this node daemon serves calls
        self.lease = NodeLease(context)
        rights = RunRights(context, self.lease.explain_refusal)
        #: how the master hears of this node
        self.report = EndReport(context)
        #: to be started when this node daemon serves calls
        self.ends = EndWatch(context, self.report.send)
        guest_ends = GuestEnds(context)
        #: to be started when this node daemon serves calls
        self.sampler = Sampler(context)
        #: to be started when this node daemon serves calls
        self.holds = Holds(context)
        consoles = Consoles()
        instances = Instances(context, disks, rights, self.ends, consoles, self.lease.note_begin)
        guest_os = GuestOs(context, disks)
        images = Images(context, disks, copies)
        ssh = Ssh(context)
        exports = Exports(context)
        desk, copy_guests = Desk(context), CopyGuests(context)
        self.all: tuple[object, ...] = (
            system,
            Versions(context),
            Verifier(
                context,
                system,
                instances,
                disks,
                storage,
                guest_os,
                ssh,
                self.lease.find_watchdog_flaw,
            ),
            replica,
            MasterIp(context, hooks),
            External(context),
            Switches(context),
            Files(context, self.report.repeat),
            Crypto(context),
            ssh,
            hooks,
            storage,
            disks,
            DiskContent(context, disks, copies),
            copies,
            Transfer(context, disks, copies),
            images,
            Backups(context, disks, copies, desk, copy_guests),
            BackupFiles(context, images, copies, desk, copy_guests),
            DiskStates(disks),
            Mirrors(context, disks),
            instances,
            rights,
            NodeSamples(context, self.sampler),
            Hotplug(context, disks),
            Migration(context, disks, rights, self.ends),
            Conversion(context, disks),
            guest_os,
            HelperGuests(context, disks, instances, images, copies),
            Metadata(context),
            guest_ends,
            self.holds,
            JobLogs(context),
            exports,
            Impexp(context, disks, exports),
            X509(context),
        )
        self._stops = (
            self.lease.stop,
            self.sampler.stop,
            consoles.stop,
            self.standby.stop,
            self.ends.stop,
            self.report.stop,
            guest_ends.stop,
            self.holds.stop,
            replica.stop,
        )

    def stop(self) -> None:
        """To be called when no call comes any more."""
        for stop in self._stops:
            stop()
