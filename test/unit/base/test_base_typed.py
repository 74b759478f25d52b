"""Types that several threads meet for the first time at the same moment."""

from __future__ import annotations

import subprocess
import sys

#: Eight threads of a new process read the same opcode; so often that one in many would show.
PROGRAM = """
import sys, threading
sys.setswitchinterval(1e-6)
from ganeti.opcodes import instance_create, wire
ready = threading.Barrier(8)
read = []
def go():
    ready.wait()
    raw = {"OP_ID": "OP_INSTANCE_MULTI_ALLOC", "instances": [], "iallocator": "x"}
    read.append(wire.from_wire(raw).iallocator)
threads = [threading.Thread(target=go) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert read == ["x"] * 8, read
"""


def test_a_new_type_is_met_by_many_threads_at_once() -> None:
    for _ in range(5):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (done.returncode, done.stderr)
