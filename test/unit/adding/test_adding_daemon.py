"""Add a daemon in the files that ``doc/adding.md`` names; start, look after and stop it."""

from __future__ import annotations

import tomllib
from pathlib import Path

from own_package import OwnPackage

ROWS = ("daemon",)

DAEMON = '''"""The program ``ganeti-greetd``: greets who connects."""

import contextlib
import logging
import sys
from functools import partial

from ganeti import constants, paths
from ganeti.base import daemon
from ganeti.base import log as base_log
from ganeti.net import tcp_daemon
from ganeti.net.http_server.server import HttpServer


def main(argv=None):
    where = paths.current()
    return tcp_daemon.run_small(command_line(), argv, _serve, needs=where.ssconf("cluster_name"),
                                log_file=where.log / "greetd.log")


def command_line():
    return tcp_daemon.make_small_parser(constants.GREETD, "Greets who connects.", "TCP")


def _greet(_environ, start):
    start("200 OK", [])
    return [b"hello"]


def _serve(options, background):
    stop = daemon.StopSignal(base_log.reopen)
    stop.install()
    server = HttpServer((options.address, options.port), _greet, threads=1, name="greetd")
    with contextlib.ExitStack() as stack:
        server.start()
        stack.callback(server.stop, 5.0)
        daemon.serve(stop, background, lambda: tcp_daemon.ask_self(options), "Ends")


if __name__ == "__main__":
    sys.exit(main())
'''
NAME = 'GREETD: Final = "ganeti-greetd"\n'
PORT = ("METAD: 80}", "METAD: 80, GREETD: 1899}")
SERVICE = """        Service(
            constants.GREETD,
            "ganeti.greet.daemon",
            "GREETD_ARGS",
            lambda p: p.ssconf("cluster_name"),
            optional=True,
        ),
"""
PROGRAM = """#!/usr/bin/env python3
import sys

from ganeti.greet.daemon import main

if __name__ == "__main__":
    sys.exit(main())
"""
UNIT = """[Unit]
PartOf=ganeti-node.target

[Service]
Type=notify
EnvironmentFile=-/etc/default/ganeti
ExecStart=/usr/sbin/ganeti-greetd -f $GREETD_ARGS
"""
WANTS = "Wants=ganeti-greetd.service\n"
SCRIPT = 'ganeti-greetd = "ganeti.greet.daemon:main"\n'
FLOOR = ("ganeti.confd | ganeti.metad", "ganeti.confd | ganeti.metad | ganeti.greet")

LIFE = """
import os, signal, socket, time, urllib.request

from ganeti import paths
from ganeti.base import daemon, process
from ganeti.base.clock import SYSTEM
from ganeti.bootstrap import daemon_util
from ganeti.tools import manual
from ganeti.upkeep.round import Here, Options
from ganeti.watcher import daemons

NAME = "ganeti-greetd"
where = paths.current()
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
for path in (where.data, where.log, where.run, where.under("/etc/default")):
    path.mkdir(parents=True, exist_ok=True)
where.ssconf("cluster_name").write_text("c.example.com")
where.ssconf("master_node").write_text("other.example.com")


def use(*words):
    print(*words, "->", daemon_util.main(list(words)), flush=True)


def greet():
    print(urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=20).read().decode())


use("is-daemon-name", NAME)
use("start-all")
print("runs unasked:", daemon.running_pid(where.pid_file(NAME)) is not None)
options = f"-b 127.0.0.1 -p {port}"
where.under("/etc/default/ganeti").write_text(f'GREETD_ARGS="{options}"')
try:
    use("start", NAME)
    greet()
    pid = daemon.running_pid(where.pid_file(NAME))
    os.kill(pid, signal.SIGKILL)
    process.wait_exit(pid, 20)
    daemons.run(Here(where, SYSTEM, Options()))
    greet()
    (where.log / "greetd.log").rename(where.log / "old.log")
    use("rotate-all-logs")
finally:
    use("stop-all")
print("runs:", daemon.running_pid(where.pid_file(NAME)) is not None)
print("log again:", (where.log / "greetd.log").exists())
print("man page:", "Greets who connects" in manual.page(NAME))
"""
#: Nothing stays behind when the program above is cut off.
STOP = """
from ganeti.bootstrap import daemon_util

daemon_util.main(["stop-all"])
"""


def test_a_daemon_is_started_watched_rotated_and_stopped(tmp_path: Path) -> None:
    package = OwnPackage(tmp_path / "package", *ROWS)
    package.write("greet/__init__.py", "")
    package.write("greet/daemon.py", DAEMON)
    package.insert("constants.py", NAME, before="WATCHER: Final")
    package.replace("constants.py", *PORT)
    package.insert(
        "base/services.py", SERVICE, before="        Service(\n            constants.MASTERD"
    )
    package.write("daemons/ganeti-greetd", PROGRAM)
    package.write("daemons/systemd/ganeti-greetd.service", UNIT)
    package.insert("daemons/systemd/ganeti-node.target", WANTS, before="Wants=")
    package.insert("pyproject.toml", SCRIPT, before="ganeti-mond = ")
    package.replace("pyproject.toml", *FLOOR)
    try:
        said = package.output(LIFE, tmp_path / "root")
    finally:
        package.run(STOP, tmp_path / "root")
    assert said == [
        "is-daemon-name ganeti-greetd -> 0",
        "start-all -> 0",
        "runs unasked: False",
        "start ganeti-greetd -> 0",
        "hello",
        "hello",
        "rotate-all-logs -> 0",
        "stop-all -> 0",
        "runs: False",
        "log again: True",
        "man page: True",
    ]
    project = tomllib.loads(package.path("pyproject.toml").read_text())
    assert "ganeti-greetd" in project["project"]["scripts"]
