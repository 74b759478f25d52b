"""The end of a cluster on its last node."""

from __future__ import annotations

import shutil

from ganeti import paths
from ganeti.base import services
from ganeti.bootstrap.init import remove_files


def finish_destroy() -> None:
    """Stop the daemons of this node and remove the cluster's files; disks and logs stay.

    Call it after OP_CLUSTER_DESTROY succeeded. Idempotent.
    """
    where = paths.current()
    for name in reversed(services.ALL):
        services.stop(name, where)
    shutil.rmtree(where.queue, ignore_errors=True)
    remove_files(where)
