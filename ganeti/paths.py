"""Every file, socket and directory, under one root.

``GANETI_ROOTDIR`` moves the whole tree, so that several nodes (and several clusters) can live
side by side on one machine; ``GANETI_HOSTNAME`` then names the node.
"""

from __future__ import annotations

import os
import socket
from functools import cached_property
from pathlib import Path

ROOTDIR_VARIABLE = "GANETI_ROOTDIR"
HOSTNAME_VARIABLE = "GANETI_HOSTNAME"


class Paths:
    """Names of everything on disk below ``root``; makes no directory by itself."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Paths) and self.root == other.root

    def __hash__(self) -> int:
        return hash(self.root)

    def under(self, absolute: str) -> Path:
        """A path of the real system moved below the root (``<root>/etc/hosts``)."""
        return self.root / absolute.lstrip("/")

    def local(self, path: str) -> str:
        """Return the path on this node of a file that the whole cluster calls by an absolute path.

        Different from ``path`` only in a rooted cluster, where each node has a tree of its own.
        """
        if self.root == Path("/") or not path.startswith("/"):
            return path
        root = str(self.root)
        return path if path.startswith(f"{root}/") else f"{root}{path}"

    def common(self, path: Path) -> str:
        """Inverse of :meth:`local`: what the whole cluster calls a path of this node."""
        return f"/{path.relative_to(self.root)}" if path.is_relative_to(self.root) else str(path)

    # data: survives a reboot
    @cached_property
    def data(self) -> Path:
        return self.under("/var/lib/ganeti")

    @property
    def config_file(self) -> Path:
        return self.data / "config.data"

    @property
    def journal_file(self) -> Path:
        return self.data / "config.journal"

    @property
    def history(self) -> Path:
        """Directory of older parts of the journal."""
        return self.data / "history"

    @property
    def init_mark(self) -> Path:
        """Is there while ``gnt-cluster init`` has not written a complete configuration."""
        return self.data / "init-unfinished"

    @property
    def upgrade_intent(self) -> Path:
        """There while an upgrade has not come to its end: from which version, to which, by whom."""
        return self.data / "intent-to-upgrade"

    @property
    def epoch_file(self) -> Path:
        """Number of the highest master term that this node has seen."""
        return self.data / "epoch"

    @property
    def run_rights(self) -> Path:
        """Run rights of this node: one file for each instance that it was ever asked to run."""
        return self.data / "run-rights"

    @property
    def master_stopped_file(self) -> Path:
        """Exists while the master daemon of this node was stopped by an administrator."""
        return self.data / "master-stopped"

    @property
    def position_file(self) -> Path:
        """How new the copy of the cluster's state on this node is."""
        return self.data / "position"

    @property
    def queue(self) -> Path:
        return self.data / "queue"

    @property
    def samples(self) -> Path:
        """Samples that the node daemon took of the node and its guests, see ``node/rings.py``."""
        return self.data / "samples"

    @property
    def findings(self) -> Path:
        """Findings of the last verifications, see ``master/findings.py``."""
        return self.data / "verify-findings.json"

    @property
    def notifications(self) -> Path:
        """Known conditions and notices that are still to be sent, see ``master/notifier.py``."""
        return self.data / "notifications.json"

    @property
    def ca_cert(self) -> Path:
        """Certificates of the cluster authority, PEM, readable by all; may hold several."""
        return self.data / "ca.pem"

    @property
    def ca_key(self) -> Path:
        """Private key of the cluster authority; on master candidates only, mode 0400."""
        return self.data / "ca.key"

    @property
    def server_cert(self) -> Path:
        """Key and certificate this node serves RPC with."""
        return self.data / "server.pem"

    @property
    def client_cert(self) -> Path:
        """Key and certificate this node calls other nodes with."""
        return self.data / "client.pem"

    @property
    def previous_crypto(self) -> Path:
        """Directories with the ``client.pem`` and ``ca.pem`` that this node had before."""
        return self.data / "previous-crypto"

    @property
    def rapi(self) -> Path:
        """Directory of the remote API's ``users``, ``tokens``, ``login.toml`` and ``sessions``."""
        return self.data / "rapi"

    @property
    def rapi_users(self) -> Path:
        return self.rapi / "users"

    @property
    def rapi_tokens(self) -> Path:
        return self.rapi / "tokens"

    @property
    def rapi_login(self) -> Path:
        """Identity providers and the directory that say who users are."""
        return self.rapi / "login.toml"

    @property
    def rapi_sessions(self) -> Path:
        """Sessions of browsers while the remote API is restarted."""
        return self.rapi / "sessions"

    @property
    def rapi_cert(self) -> Path:
        """Key and certificate of the remote API."""
        return self.data / "rapi.pem"

    @property
    def spice_cert(self) -> Path:
        """Key and certificate of the SPICE displays of guests."""
        return self.data / "spice.pem"

    @property
    def spice_ca_cert(self) -> Path:
        return self.data / "spice-ca.pem"

    @property
    def known_hosts(self) -> Path:
        """Public keys of the SSH servers of all nodes, in the form of OpenSSH."""
        return self.data / "known_hosts"

    @property
    def ssh_public_keys(self) -> Path:
        """Public keys of root of all nodes, a line ``<node uuid> <key>`` each; on candidates."""
        return self.data / "ganeti_pub_keys"

    @property
    def ssh_managed(self) -> Path:
        """Is there when this node lets its cluster say who may log in as root."""
        return self.data / "ssh-managed"

    @property
    def hosts_managed(self) -> Path:
        """Is there when this node lets its cluster list nodes in ``/etc/hosts``."""
        return self.data / "hosts-managed"

    @property
    def domain_secret(self) -> Path:
        return self.data / "cluster-domain-secret"

    @property
    def hmac_key(self) -> Path:
        return self.data / "hmac.key"

    def ssconf(self, key: str) -> Path:
        return self.data / f"ssconf_{key}"

    @property
    def watcher_lock(self) -> Path:
        """Held while a watcher works; a second one ends at once."""
        return self.locks / "ganeti-watcher.lock"

    @property
    def watcher_memory_lock(self) -> Path:
        """Held while ``watcher_state`` is read and written."""
        return self.locks / "ganeti-watcher-memory.lock"

    @property
    def watcher_pause(self) -> Path:
        return self.data / "watcher.pause"

    def watcher_state(self, group: str) -> Path:
        """Memory of the watcher of a node group, given by its UUID: attempts and states (JSON)."""
        return self.data / f"watcher.{group}.data"

    def watcher_status(self, group: str) -> Path:
        """A line ``<instance> <status>`` for each instance of a node group."""
        return self.data / f"watcher.{group}.instance-status"

    @property
    def watcher_certificates(self) -> Path:
        """When the watcher last checked the expiry of certificates (Unix time)."""
        return self.data / "watcher.certificates"

    def onetime_conf(self, daemon: str) -> Path:
        """Options for one start of a daemon by systemd."""
        return self.data / f"{daemon}.onetime.conf"

    @property
    def takeover(self) -> Path:
        """Files of the software before, kept by ``ganeti-takeover``; may have secrets."""
        return self.under("/var/lib/ganeti-takeover")

    @property
    def exports(self) -> Path:
        return self.under("/srv/ganeti/export")

    @property
    def backups(self) -> Path:
        """The repository of backups unless another one is named."""
        return self.under("/srv/ganeti/backup")

    @property
    def backup_work(self) -> Path:
        """Old content of blocks that guests overwrite during a backup, and sockets for that."""
        return self.data / "backup-work"

    @property
    def restored_files(self) -> Path:
        """Archives with files of backups, on the file system of ``backup_work``."""
        return self.data / "restored-files"

    @property
    def backup_repositories(self) -> Path:
        """Descriptions of repositories of restic and borg, one a file."""
        return self.conf / "backup-repositories"

    @property
    def backup_paths(self) -> Path:
        """List of the directories that may be repositories."""
        return self.conf / "backup-paths"

    @property
    def file_storage(self) -> Path:
        return self.under("/srv/ganeti/file-storage")

    @property
    def shared_file_storage(self) -> Path:
        return self.under("/srv/ganeti/shared-file-storage")

    @property
    def images(self) -> Path:
        """Files of images on master candidates."""
        return self.under("/srv/ganeti/images")

    @property
    def image_uploads(self) -> Path:
        """Files on the master that are to become images."""
        return self.images / "uploads"

    @property
    def os_images(self) -> Path:
        """Files that ``os-image`` and the images of helper guests may name by a path."""
        return self.under("/srv/ganeti/os-images")

    @property
    def helper_guests(self) -> Path:
        """Disks of helper guests until they run; what they are to do may have secrets."""
        return self.under("/var/cache/ganeti/helper-guests")

    @property
    def image_cache(self) -> Path:
        """Files of images on nodes that make instances of them."""
        return self.under("/var/cache/ganeti/images")

    # run: gone after a reboot
    @cached_property
    def run(self) -> Path:
        return self.under("/var/run/ganeti")

    @property
    def node_lease(self) -> Path:
        """The lease of this node, for a node daemon that starts again."""
        return self.run / "node-lease.json"

    @property
    def master_grant(self) -> Path:
        """There while Pacemaker lets this node have the role of the master."""
        return self.run / "master-grant"

    @property
    def socket_dir(self) -> Path:
        return self.run / "socket"

    @property
    def luxi_socket(self) -> Path:
        return self.socket_dir / "ganeti-query"

    @property
    def luxi_socket_legacy(self) -> Path:
        return self.socket_dir / "ganeti-master"

    @property
    def metad_socket(self) -> Path:
        """The data that ``ganeti-metad`` serves to guests."""
        return self.socket_dir / "ganeti-metad"

    @property
    def metadata(self) -> Path:
        """Metadata for guests of this node, a file for each; may have secrets."""
        return self.run / "metadata"

    @property
    def host_stops(self) -> Path:
        """There while this server is shut down: no guest may begin here. Gone after a boot."""
        return self.run / "host-stops"

    @property
    def version_problem(self) -> Path:
        """Why the last switch of this node to another version failed."""
        return self.run / "version-switch.problem"

    @property
    def instance_status(self) -> Path:
        """A line ``<instance> <status>`` for each instance, as the watcher saw it."""
        return self.run / "instance-status"

    def pid_file(self, daemon: str) -> Path:
        return self.run / f"{daemon}.pid"

    @property
    def crypto(self) -> Path:
        """A directory with key and certificate for each remote transfer, mode 0700."""
        return self.run / "crypto"

    @property
    def transfers(self) -> Path:
        """Files of running transfers of disks, a directory for each transfer."""
        return self.run / "import-export"

    @property
    def instance_disks(self) -> Path:
        return self.run / "instance-disks"

    @property
    def held_guests(self) -> Path:
        """A note for each guest that is paused while its disks are copied."""
        return self.run / "held-guests"

    @property
    def instance_reason(self) -> Path:
        return self.run / "instance-reason"

    @property
    def kvm(self) -> Path:
        return self.run / "kvm-hypervisor"

    @property
    def kvm_uefi(self) -> Path:
        """Variables of the firmware of instances."""
        return self.data / "kvm-uefi"

    @property
    def fake_hypervisor(self) -> Path:
        return self.run / "fake-hypervisor"

    @property
    def chroot(self) -> Path:
        return self.run / "chroot-hypervisor"

    @property
    def lxc(self) -> Path:
        return self.run / "lxc"

    # log
    @cached_property
    def log(self) -> Path:
        return self.under("/var/log/ganeti")

    @property
    def os_log(self) -> Path:
        return self.log / "os"

    @property
    def extstorage_log(self) -> Path:
        return self.log / "extstorage"

    @property
    def kvm_log(self) -> Path:
        return self.log / "kvm"

    @property
    def chroot_log(self) -> Path:
        return self.log / "chroot"

    @property
    def lxc_log(self) -> Path:
        return self.log / "lxc"

    # configuration by hand
    @cached_property
    def conf(self) -> Path:
        return self.under("/etc/ganeti")

    @property
    def version_link(self) -> Path:
        """Leads to the directory of the version of this software that this node uses."""
        return self.conf / "lib"

    @property
    def hooks(self) -> Path:
        return self.conf / "hooks"

    @property
    def file_storage_paths(self) -> Path:
        """Directories that may hold file disks, one a line, ``#`` comments."""
        return self.conf / "file-storage-paths"

    @property
    def notify_commands(self) -> Path:
        """Directory of the programs that notifications may run on the master."""
        return self.conf / "notify-commands"

    @property
    def restricted_commands(self) -> Path:
        """Directory of the programs that the master may have run by ``restricted-command``."""
        return self.conf / "restricted-commands"

    @property
    def restricted_allow(self) -> Path:
        """Names of those that this node runs, one a line; without the file none."""
        return self.conf / "restricted-commands.allow"

    @property
    def version_lock(self) -> Path:
        """Held while this node changes from one version of this software to another."""
        return self.locks / "ganeti-version.lock"

    @property
    def restricted_lock(self) -> Path:
        """Held while one of them runs."""
        return self.locks / "ganeti-restricted-commands.lock"

    @property
    def master_ip_script(self) -> Path:
        """The administrator's own script that sets the address of the cluster."""
        return self.conf / "scripts" / "master-ip-setup"

    @property
    def master_ip_state(self) -> Path:
        """In a rooted cluster: the address that this node would carry, as the script wrote it."""
        return self.run / "master-ip"

    @property
    def hosts(self) -> Path:
        return self.under("/etc/hosts")

    @property
    def services(self) -> Path:
        return self.under("/etc/services")

    @property
    def locks(self) -> Path:
        return self.under("/var/lock")

    @property
    def os_search_path(self) -> tuple[Path, ...]:
        """Directories with OS definitions; the first one that has a name wins."""
        return tuple(
            self.under(directory)
            for directory in (
                "/srv/ganeti/os",
                "/usr/local/lib/ganeti/os",
                "/usr/lib/ganeti/os",
                "/usr/share/ganeti/os",
            )
        )

    @property
    def iallocator_search_path(self) -> tuple[Path, ...]:
        """Directories with allocators; the first one that has a name wins."""
        return (
            self.under("/usr/local/lib/ganeti/iallocators"),
            self.under("/usr/lib/ganeti/iallocators"),
        )

    @property
    def etcd_settings(self) -> Path:
        """How etcd is reached, where it decides about the master."""
        return self.conf / "etcd"

    @property
    def fence_parameters(self) -> Path:
        """Parameters of fence agents: a file for each node, readable by root only."""
        return self.conf / "fence"

    @property
    def fence_agent_search_path(self) -> tuple[Path, ...]:
        """Directories with fence agents; the first one that has a name wins."""
        return (self.under("/usr/local/lib/ganeti/fence-agents"), Path("/usr/sbin"))

    @property
    def extstorage_search_path(self) -> tuple[Path, ...]:
        """Directories with providers of external storage; the first one that has a name wins."""
        return tuple(
            self.under(directory)
            for directory in (
                "/srv/ganeti/extstorage",
                "/usr/local/lib/ganeti/extstorage",
                "/usr/lib/ganeti/extstorage",
                "/usr/share/ganeti/extstorage",
            )
        )


def current() -> Paths:
    """Paths of this process, by ``GANETI_ROOTDIR`` (the real root without it)."""
    return Paths(Path(os.environ.get(ROOTDIR_VARIABLE) or "/"))


def is_rooted() -> bool:
    """Whether this process runs below a root of its own (a cluster inside a directory)."""
    return bool(os.environ.get(ROOTDIR_VARIABLE))


def hostname() -> str:
    """Name of this node: ``GANETI_HOSTNAME``, else the fully qualified name of the machine."""
    return os.environ.get(HOSTNAME_VARIABLE) or socket.getfqdn()
