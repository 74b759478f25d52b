"""gnt-cluster upgrade: another installed version for all nodes."""

from __future__ import annotations

import os

from ganeti import errors
from ganeti.cli.command import Call
from ganeti.cli.option import switch, value
from ganeti.cli.programs import CLUSTER

_TO = value("--to", dest="to", metavar="VERSION", help="The version to use, such as 3.3")
_RESUME = switch("--resume", dest="resume", help="Finish an upgrade that did not come to its end")
_PLAN = switch("--plan", dest="plan", help="Only list what would be done")


@CLUSTER.command("upgrade", options=(_TO, _RESUME, _PLAN))
def upgrade(call: Call) -> None:
    """Switch to another version of this software, up or down, while instances run.

    The version must be installed on all nodes, and be the one before or after the present one. The
    command waits for running jobs; new ones are accepted, and begin after the switch. Then the
    daemons of each node start again with the version; its instances keep running. The master
    daemon is away for some seconds. The configuration is converted; the former one is kept beside
    it as config.data.backup-*.

    To go back, name the former version. After a crash --resume completes the switch; so does the
    watcher. A node that is offline follows when it is back.
    """
    from ganeti import paths
    from ganeti.base import releases, upgrade_intent
    from ganeti.bootstrap import upgrade as work

    opts = call.opts
    if bool(opts.to) == bool(opts.resume):
        raise errors.ParameterError("give either --to VERSION or --resume")
    where = paths.current()
    intent = upgrade_intent.read(where)
    if opts.resume and intent is None:
        print("There is no upgrade to resume")
        return
    work.check_place(where)
    target = releases.parse(opts.to if intent is None or opts.to else intent.new)
    work.refuse_second(intent)
    driver = work.find_driver(where, target)
    if driver is not None:
        words = ["upgrade", "--to", str(target), *(["--plan"] if opts.plan else [])]
        os.execv(driver[0], [*driver, "gnt-cluster", *words])
    work.Upgrade(lambda line: print(line, flush=True), target).run(plan_only=opts.plan)
