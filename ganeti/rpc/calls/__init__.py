"""Every call that a node daemon answers: one abstract method each, by family.

The signature is the wire format: a JSON list of the arguments in order, and the result as JSON.
Encoding, checking (``rpc/wire.py``) and time-outs follow from it. Each family here has a file of
the same name in ``node/``, whose class implements it; mypy fails when a method is missing there.
Where Ganeti has the same call, its name is used. Sizes are MiB, times seconds.
"""

from __future__ import annotations

from ganeti.rpc.calls.backup_files import BackupFileCalls
from ganeti.rpc.calls.backups import BackupCalls
from ganeti.rpc.calls.conversion import ConversionCalls
from ganeti.rpc.calls.copying import CopyCalls
from ganeti.rpc.calls.crypto import CryptoCalls
from ganeti.rpc.calls.disk_content import DiskContentCalls
from ganeti.rpc.calls.disk_states import DiskStateCalls
from ganeti.rpc.calls.disks import DiskCalls
from ganeti.rpc.calls.exports import ExportCalls
from ganeti.rpc.calls.external import ExternalCalls
from ganeti.rpc.calls.files import FileCalls
from ganeti.rpc.calls.guest_ends import GuestEndCalls
from ganeti.rpc.calls.guest_os import GuestOsCalls
from ganeti.rpc.calls.helper_guests import HelperGuestCalls
from ganeti.rpc.calls.holds import HoldCalls
from ganeti.rpc.calls.hooks import HookCalls
from ganeti.rpc.calls.hotplug import HotplugCalls
from ganeti.rpc.calls.images import ImageCalls
from ganeti.rpc.calls.impexp import ImpexpCalls
from ganeti.rpc.calls.instances import InstanceCalls
from ganeti.rpc.calls.job_logs import JobLogCalls
from ganeti.rpc.calls.master_ip import MasterIpCalls
from ganeti.rpc.calls.metadata import MetadataCalls
from ganeti.rpc.calls.migration import MigrationCalls
from ganeti.rpc.calls.mirrors import MirrorCalls
from ganeti.rpc.calls.replica import ReplicaCalls
from ganeti.rpc.calls.run_rights import RunRightCalls
from ganeti.rpc.calls.samples import SampleCalls
from ganeti.rpc.calls.ssh import SshCalls
from ganeti.rpc.calls.storage import StorageCalls
from ganeti.rpc.calls.switches import SwitchCalls
from ganeti.rpc.calls.system import SystemCalls
from ganeti.rpc.calls.transfer import TransferCalls
from ganeti.rpc.calls.verify import VerifyCalls
from ganeti.rpc.calls.versions import VersionCalls
from ganeti.rpc.calls.x509 import X509Calls


class NodeCalls(
    SystemCalls,
    VersionCalls,
    VerifyCalls,
    ReplicaCalls,
    MasterIpCalls,
    ExternalCalls,
    SwitchCalls,
    FileCalls,
    CryptoCalls,
    SshCalls,
    HookCalls,
    StorageCalls,
    DiskCalls,
    DiskContentCalls,
    CopyCalls,
    TransferCalls,
    ImageCalls,
    BackupCalls,
    BackupFileCalls,
    DiskStateCalls,
    MirrorCalls,
    InstanceCalls,
    RunRightCalls,
    SampleCalls,
    HotplugCalls,
    MigrationCalls,
    ConversionCalls,
    GuestOsCalls,
    HelperGuestCalls,
    MetadataCalls,
    GuestEndCalls,
    HoldCalls,
    JobLogCalls,
    ExportCalls,
    ImpexpCalls,
    X509Calls,
):
    """Calls of the master to a node, and of nodes to the master node.

    Implementations raise GanetiError to refuse.
    """
