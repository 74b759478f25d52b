"""Numbers and names that are part of an interface; nothing here depends on anything."""

from __future__ import annotations

from typing import Final

RELEASE_VERSION: Final = "3.2.0"
VERSION_MAJOR: Final = 3
VERSION_MINOR: Final = 2
#: Version of configuration, LUXI and node RPC alike: major, minor, revision 0.
PROTOCOL_VERSION: Final = VERSION_MAJOR * 1_000_000 + VERSION_MINOR * 10_000
CONFIG_VERSION: Final = PROTOCOL_VERSION
EXPORT_VERSION: Final = 0
OS_API_VERSIONS: Final = (10, 15, 20)
HOOKS_VERSION: Final = 2
JOB_QUEUE_VERSION: Final = 1

NODED: Final = "ganeti-noded"
MASTERD: Final = "ganeti-masterd"
RAPI: Final = "ganeti-rapi"
CONFD: Final = "ganeti-confd"
MOND: Final = "ganeti-mond"
METAD: Final = "ganeti-metad"
WATCHER: Final = "ganeti-watcher"
#: Source in the reason trail of every job of the watcher.
WATCHER_SOURCE: Final = "gnt:watcher"
#: Sources of the reasons of jobs with which the master recovers from the death of a node.
FENCING_SOURCE: Final = "gnt:master:node-watch"
LATE_STARTS_SOURCE: Final = "gnt:master:retries"
RECOVERY_SOURCES: Final = frozenset({FENCING_SOURCE, LATE_STARTS_SOURCE})

#: User that the remote API runs as; it hands in jobs for its own users.
RAPI_USER: Final = "gnt-rapi"
#: Group of the users that daemons run as; it may use the sockets of the master.
DAEMONS_GROUP: Final = "gnt-daemons"

#: Ports when neither the cluster's services file nor the system's names one.
DEFAULT_PORTS: Final = {NODED: 1811, RAPI: 5080, CONFD: 1814, MOND: 1815, METAD: 80}
#: Those that serve over UDP; the others use TCP.
UDP_SERVICES: Final = frozenset((CONFD,))

#: The parameter of any OS whose value is an image for the first disk, in place of the scripts.
OS_IMAGE: Final = "os-image"

#: Beginning of the name of a NIC by which a guest talks to its node; the instance's name follows.
COMMUNICATION_NIC: Final = "ganeti:communication:"
#: Beginning of the name of its interface on the node.
COMMUNICATION_INTERFACE: Final = "gnt.com."
#: Address at which all guests reach the server of their metadata there.
METADATA_ADDRESS: Final = "169.254.169.254"

#: The built-in allocator, which a new cluster asks by default.
BUILT_IN_ALLOCATOR: Final = "hail"

EXIT_SUCCESS: Final = 0
EXIT_FAILURE: Final = 1
EXIT_USAGE: Final = 2
EXIT_NOTCLUSTER: Final = 5
EXIT_NOTMASTER: Final = 11
EXIT_NODESETUP_ERROR: Final = 12
EXIT_CONFIRMATION: Final = 13
EXIT_UNKNOWN_FIELD: Final = 14

MAX_DISKS: Final = 16
MAX_NICS: Final = 8
MAX_TAG_LEN: Final = 128
MAX_TAGS_PER_OBJ: Final = 4096

#: First and last port given to instances (VNC, SPICE) and DRBD.
FIRST_DRBD_PORT: Final = 11000
LAST_DRBD_PORT: Final = 14999
VNC_BASE_PORT: Final = 5900

#: Seconds that the clocks of nodes may be apart.
MAX_CLOCK_SKEW: Final = 150

#: Seconds a guest gets to stop by itself before it is killed.
DEFAULT_SHUTDOWN_TIMEOUT: Final = 120

PRIORITY_HIGHEST: Final = -20
PRIORITY_HIGH: Final = -10
PRIORITY_NORMAL: Final = 0
PRIORITY_LOW: Final = 10
PRIORITY_LOWEST: Final = 19

#: Largest LUXI message in bytes, both ways; larger ones are refused.
LUXI_MAX_MESSAGE: Final = 64 * 1024 * 1024
#: Seconds a client waits for an answer; the server caps waits for job changes below it.
LUXI_READ_TIMEOUT: Final = 180
WAIT_FOR_JOB_CHANGE_CAP: Final = 89

#: Job files in one directory of the archive.
JOBS_PER_ARCHIVE_DIR: Final = 10_000
