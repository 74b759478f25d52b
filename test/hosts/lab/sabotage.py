"""Means to break things inside a node at a chosen moment."""

from __future__ import annotations

from lab.channel import wait_for
from lab.cluster import Node

#: The node daemon looks into this directory first; a boot brings the real program back.
_FIRST = "/usr/local/sbin"
_ASLEEP = "sleep 7777"


def stop_at(node: Node, program: str, word: str = "", *, but: str = "", done: bool = True) -> None:
    """Let a program hang from now on, after it has done its work, or before.

    Only when ``word`` is among its arguments, and ``but`` is not.
    """
    real = node.sh(f"type -P {program}")
    spared = f'case " $* " in *" {but} "*) exec {real} "$@" ;; esac\n' if but else ""
    chosen = f'case " $* " in *" {word} "*) ;; *) exec {real} "$@" ;; esac\n' if word else ""
    work = f'{real} "$@" || exit\n' if done else ""
    script = f"#!/bin/bash\n{spared}{chosen}{work}exec {_ASLEEP}\n"
    node.ok("tee", f"{_FIRST}/{program}", stdin=script)
    node.sh(f"chmod +x {_FIRST}/{program}")


def wait_until_stopped(node: Node) -> None:
    """Wait until a program hangs."""
    wait_for(f"{node} at work", lambda: node.run("pgrep", "-fx", _ASLEEP).code == 0, 120.0)


def let_go(node: Node, program: str) -> None:
    """The program is the real one again; one that hangs ends."""
    node.sh(f"rm -f {_FIRST}/{program}; pkill -fx '{_ASLEEP}' || true")


def kill_daemon(node: Node) -> None:
    """End the node daemon as a crash would."""
    node.sh("kill -KILL $(cat /var/run/ganeti/ganeti-noded.pid)")
