"""A root of another release of Debian than this machine's, in which packages are built.

Wheels are downloaded outside, for the Python of that release; the root itself asks no network.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from lab.place import REPOSITORY, LabError, Unavailable, being_made, cache

#: See ``tools/make-deb``.
_TOOLS = ("build-essential", "debhelper", "python3-pip", "python3-venv")
#: Arguments: the root, the tree, wheels, where packages go, name and address of the maintainer.
_BUILD = """\
set -eu
root=$1
shift
for name in source wheels made; do
    mkdir -p "$root/srv/$name"
    mount --bind "$1" "$root/srv/$name"
    shift
done
mount -t proc proc "$root/proc"
exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \\
    DEBFULLNAME="$1" DEBEMAIL="$2" PIP_NO_INDEX=1 PIP_FIND_LINKS=/srv/wheels \\
    /srv/source/tools/make-deb /srv/made
"""
_MAINTAINER = ("Tests", "root@localhost")


def make_deb(suite: str, tree: Path, made: Path) -> subprocess.CompletedProcess[str]:
    """Run ``tools/make-deb`` of ``tree`` in a root of ``suite``; packages go to ``made``.

    Raises:
        Unavailable: the root cannot be made, or wheels cannot be downloaded.
    """
    root = _root(suite)
    arguments = [root, tree, _wheels(root), made]
    words = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", _BUILD, "sh"]
    words += [*map(str, arguments), *_MAINTAINER]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def _root(suite: str) -> Path:
    key = hashlib.sha256(" ".join(_TOOLS).encode()).hexdigest()[:10]
    target = cache() / f"build-{suite}-{key}"
    if not target.exists():
        with being_made(target) as made:
            words = ["mmdebstrap", "--quiet", "--mode=root", "--variant=minbase"]
            words += ["--format=directory", f"--include={','.join(_TOOLS)}"]
            words += ['--aptopt=APT::Install-Recommends "false"', suite, str(made / "root")]
            _run(words)
    return target / "root"


def _wheels(root: Path) -> Path:
    """What the package has in its environment, and what builds it."""
    python = next(root.glob("usr/bin/python3.[0-9]*[0-9]")).name.removeprefix("python")
    lines = (REPOSITORY / "requirements.txt").read_text(encoding="ascii").splitlines()
    # pip would compare their conditions with the Python that runs it.
    wanted = [line.partition(";")[0].strip() for line in lines if not line.startswith("#")]
    key = hashlib.sha256("\n".join(wanted).encode()).hexdigest()[:10]
    target = cache() / f"wheels-{python}-{key}"
    if not target.exists():
        with being_made(target) as made:
            words = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            words += ["--python-version", python, "--dest", str(made), "setuptools", "wheel"]
            _run([*words, *wanted])
    return target


def _run(words: list[str]) -> None:
    try:
        ran = subprocess.run(words, capture_output=True, text=True, check=False)
    except FileNotFoundError as err:
        raise Unavailable(f"{err.filename} is missing: apt-get install {err.filename}") from err
    if ran.returncode:
        text = (ran.stderr or ran.stdout).strip()
        raise LabError(f"{os.path.basename(words[0])}: {text[-2000:]}")
