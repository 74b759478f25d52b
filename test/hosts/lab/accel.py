"""Which accelerator runs the machines: KVM only if a kernel boots with it, else emulation.

That ``/dev/kvm`` exists says little: where it interprets code in software, no stock kernel starts.
"""

from __future__ import annotations

import os
import subprocess
from functools import cache

from lab import initramfs
from lab.kernel import kernel

#: Seconds; with real virtualization the tiny instance is up after one.
LIMIT = 15.0


@cache
def accelerator() -> str:
    """``kvm`` or ``tcg``; tries it once for each run."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    made = kernel()
    argv = ["qemu-system-x86_64", "-accel", "kvm", "-cpu", "host", "-m", "256", "-nodefaults"]
    argv += ["-no-user-config", "-display", "none", "-no-reboot", "-serial", "stdio"]
    argv += ["-kernel", str(made.image), "-initrd", str(initramfs.make_for_instance(made))]
    argv += ["-append", "console=ttyS0 quiet panic=-1 tiny.off"]
    try:
        ran = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        return "tcg"
    return "kvm" if b"TINY-UP" in ran.stdout else "tcg"
