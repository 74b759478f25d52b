"""The management controller of a machine: OpenIPMI's simulator, which cuts the machine's power.

Fence agents speak IPMI to it over the network of the lab. It stays reachable when the machine is
cut off, hangs or is off.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from pathlib import Path

from lab.channel import wait_for
from lab.machine import Machine
from lab.network import Network
from lab.packages import layer
from lab.place import LabError

USER, PASSWORD = "ganeti", "secret-of-the-lab"
FIRST_PORT = 6231
#: Called with "0x20 get power" or "0x20 set power 0"; a machine is switched on by hand only.
_CHASSIS = """\
#!/bin/sh
cd {directory} || exit 1
echo "$*" >> chassis.log
# One that was killed stays a zombie until the tests notice.
alive() {{
    pid=$(cat pid) && grep -q '^State:.[^Z]' /proc/$pid/status 2>/dev/null && [ ! -e told-off ]
}}
case "$2 $3 $4" in
    "get power "*) alive && echo power:1 || echo power:0 ;;
    "get boot "*) echo boot:default ;;
    "set power 0") if [ -e lies ]; then touch told-off; else alive && kill -KILL $pid; fi ;;
    *) exit 1 ;;
esac
exit 0
"""
_LAN = """\
name "{name}"
set_working_mc 0x20
  startlan 1
    addr {address} {port}
    priv_limit admin
    allowed_auths_callback none md2 md5 straight
    allowed_auths_user none md2 md5 straight
    allowed_auths_operator none md2 md5 straight
    allowed_auths_admin none md2 md5 straight
    guid a123456789abcdefa123456789abcdef
  endlan
  chassis_control "{chassis} 0x20"
  user 1 true "" "" user 10 none md2 md5 straight
  user 2 true "{user}" "{password}" admin 10 none md2 md5 straight
"""
_EMULATOR = """\
mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
sel_enable 0x20 1000 0x0a
mc_enable 0x20
"""


class Controller:
    """A context manager; the machine's power does not depend on its end."""

    def __init__(self, machine: Machine, network: Network, address: str, number: int) -> None:
        """``address`` is the network's own; ``number`` differs between machines."""
        self._directory = machine.directory
        self._network = network
        self._address, self._port = address, FIRST_PORT + number
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def parameters(self) -> str:
        """What the agent reads in ``/etc/ganeti/fence/NODE``."""
        return (
            f"ip={self._address}\nipport={self._port}\nusername={USER}\npassword={PASSWORD}\n"
            "lanplus=1\ncipher=3\n"
        )

    def lie(self) -> None:
        """From now on it cuts no power, and says off once it was told to."""
        (self._directory / "lies").touch()

    def stop_lying(self) -> None:
        for name in ("lies", "told-off"):
            (self._directory / name).unlink(missing_ok=True)

    @property
    def orders(self) -> list[str]:
        """What it was told so far."""
        log = self._directory / "chassis.log"
        lines = log.read_text(encoding="ascii").splitlines() if log.exists() else []
        return [line.partition(" ")[2] for line in lines if " set " in line]

    def __enter__(self) -> Controller:
        at, files = self._directory, {}
        files["chassis"] = _CHASSIS.format(directory=at)
        files["lan.conf"] = _LAN.format(
            name=at.name.partition(".")[0],
            address=self._address,
            port=self._port,
            chassis=at / "chassis",
            user=USER,
            password=PASSWORD,
        )
        files["emulator"] = _EMULATOR
        for name, text in files.items():
            (at / name).write_text(text, encoding="ascii")
        (at / "chassis").chmod(0o755)
        (at / "bmc").mkdir()
        packages = layer("controller")
        program = shutil.which("ipmi_sim", path=packages / "usr/bin")
        if program is None:
            raise LabError(f"{packages} has no ipmi_sim")
        argv = ["setpriv", "--pdeathsig", "KILL", program, "-n", "-c", str(at / "lan.conf")]
        argv += ["-f", str(at / "emulator"), "-s", str(at / "bmc")]
        libraries = {"LD_LIBRARY_PATH": str(packages / "usr/lib/x86_64-linux-gnu")}
        with (at / "bmc.log").open("wb") as log:
            self._process = subprocess.Popen(
                self._network.wrap(argv),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **libraries},
            )
        wait_for(f"the controller of {at.name}", self._listens, 20.0, 0.1)
        return self

    def _listens(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise LabError(f"ipmi_sim: {(self._directory / 'bmc.log').read_text()}")
        table = Path(f"/proc/{self._process.pid}/net/udp").read_text(encoding="ascii")
        return f":{self._port:04X} " in table

    def __exit__(self, *_what: object) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            self._process.wait()
