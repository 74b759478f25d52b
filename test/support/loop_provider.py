"""A provider of external storage for tests: volumes are files, devices are loop devices.

It does what the ExtStorage interface asks of a provider, and writes down each call with its
environment in ``calls`` beside the volumes.
"""

from __future__ import annotations

from pathlib import Path

#: MiB that a volume can have.
LARGEST = 1 << 20

_SCRIPT = """\
#!/bin/sh
# One script for all actions; its name says which.
action=$(basename "$0")
store={store}
file=$store/$VOL_NAME
{{ echo "$action $*"; env | grep -E '^(VOL|EXTP)_' | sort; echo; }} >>"$store/calls"
device() {{ losetup -j "$file" -O NAME -n | head -n 1; }}
case $action in
create)
    [ -e "$file" ] && {{ echo "volume $VOL_NAME exists"; exit 1; }}
    if [ -e "$store/full" ] || [ "$VOL_SIZE" -gt {largest} ]; then
        echo "the array is full"
        exit 1
    fi
    truncate -s "${{VOL_SIZE}}M" "$file" || {{ rm -f "$file"; exit 1; }} ;;
attach)
    [ -e "$file" ] || {{ echo "no volume $VOL_NAME" >&2; exit 1; }}
    found=$(device)
    echo "${{found:-$(losetup -f --show "$file")}}"
    echo "kvm:file:$file" ;;
detach)
    found=$(device)
    [ -z "$found" ] || losetup -d "$found" ;;
remove)
    rm "$file" ;;
grow)
    [ "$VOL_NEW_SIZE" -le {largest} ] || exit 1
    truncate -s "${{VOL_NEW_SIZE}}M" "$file" || exit 1
    found=$(device)
    [ -z "$found" ] || losetup -c "$found" ;;
setinfo)
    echo "$VOL_METADATA" >"$file.info" ;;
snapshot)
    cp "$file" "$store/$VOL_SNAPSHOT_NAME" ;;
verify)
    case "$EXTP_TIER" in
    ""|fast|slow) ;;
    *) echo "tier is fast or slow, not $EXTP_TIER"; exit 1 ;;
    esac ;;
esac
"""
ACTIONS = (
    "attach",
    "close",
    "create",
    "detach",
    "grow",
    "open",
    "remove",
    "setinfo",
    "snapshot",
    "verify",
)


def install(directory: Path, store: Path) -> None:
    """Make the provider in ``directory``, with its volumes in ``store``."""
    directory.mkdir(parents=True)
    store.mkdir(parents=True, exist_ok=True)
    for action in ACTIONS:
        script = directory / action
        script.write_text(_SCRIPT.format(store=store, largest=LARGEST))
        script.chmod(0o755)
    (directory / "parameters.list").write_text("tier  Kind of disks: fast or slow\n\npool Name\n")


def calls(store: Path) -> list[tuple[str, dict[str, str]]]:
    """(action and words, variables) of each call."""
    found: list[tuple[str, dict[str, str]]] = []
    for block in (store / "calls").read_text().split("\n\n"):
        head, *rest = block.strip().splitlines() or [""]
        if head:
            found.append((head.strip(), dict(line.split("=", 1) for line in rest)))
    return found
