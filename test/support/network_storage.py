"""What stands in for Ceph and GlusterFS: their commands, on files and loop devices of this machine.

The commands take the words that the real ones take and answer in their form. They are put where a
node that lives in a directory looks first, so ``GANETI_ROOTDIR`` must be that directory.
"""

from __future__ import annotations

from pathlib import Path

_RBD = """\
#!/bin/sh
# rbd, with files for images and loop devices for mapped ones
store={store}
echo "$*" >>"$store/calls"
while :; do
    case $1 in
    --id) shift 2 ;;
    *) verb=$1; shift; break ;;
    esac
done
pool=rbd size= image=
while [ $# -gt 0 ]; do
    case $1 in
    --pool) pool=$2; shift 2 ;;
    --size) size=$2; shift 2 ;;
    --format) shift 2 ;;
    --no-progress) shift ;;
    *) image=$1; shift ;;
    esac
done
file=$store/$pool/$image
need() {{
    [ -e "$file" ] && return
    echo "rbd: error opening image $image: (2) No such file or directory" >&2
    exit 2
}}
fits() {{ [ "${{size%M}}" -le 1048576 ]; }} # MiB
device() {{ losetup -j "$file" -O NAME -n | head -n 1; }}
case $verb in
create)
    [ -e "$file" ] && {{ echo "rbd: create error: (17) File exists" >&2; exit 17; }}
    mkdir -p "$store/$pool"
    fits || exit 22
    truncate -s "$size" "$file" || {{ rm -f "$file"; exit 22; }} ;;
info)
    need
    printf '{{"name":"%s","id":"5e1a6b8b4567","size":%s,"objects":2,"order":22,' \
        "$image" "$(stat -c %s "$file")"
    printf '"object_size":4194304,"snapshot_count":0,"format":2,"features":["layering"]}}' ;;
map)
    need
    losetup -f --show "$file" ;;
unmap)
    losetup -d "$image" ;;
showmapped)
    number=0
    printf '['
    for one in "$store"/*/*; do
        [ -f "$one" ] || continue
        found=$(losetup -j "$one" -O NAME -n | head -n 1)
        [ -z "$found" ] && continue
        [ $number -gt 0 ] && printf ','
        printf '{{"id":"%s","pool":"%s","namespace":"","name":"%s","snap":"-","device":"%s"}}' \
            $number "$(basename "$(dirname "$one")")" "$(basename "$one")" "$found"
        number=$((number + 1))
    done
    printf ']' ;;
resize)
    need
    fits || exit 22
    truncate -s "$size" "$file" || exit 22
    found=$(device)
    [ -z "$found" ] || losetup -c "$found" ;;
rm)
    need
    [ -z "$(device)" ] || {{ echo "rbd: error: image still has watchers" >&2; exit 16; }}
    rm "$file" ;;
esac
"""

_MOUNT = """\
#!/bin/sh
# mount -t glusterfs -o OPTIONS SOURCE DIRECTORY, with a file system in memory
echo "$*" >>{store}/calls
[ "$2" = glusterfs ] || exit 1
exec /bin/mount -t tmpfs -o size=64m "$5" "$6"
"""


def install_rbd(root: Path, store: Path) -> None:
    _install(root, "rbd", _RBD.format(store=store), store)


def install_gluster(root: Path, store: Path) -> None:
    _install(root, "mount", _MOUNT.format(store=store), store)


def _install(root: Path, name: str, text: str, store: Path) -> None:
    directory = root / "usr/local/sbin"
    directory.mkdir(parents=True, exist_ok=True)
    store.mkdir(parents=True, exist_ok=True)
    (store / "calls").touch()
    program = directory / name
    program.write_text(text)
    program.chmod(0o755)


def calls(store: Path) -> list[str]:
    """The words of each command so far."""
    return (store / "calls").read_text().splitlines()
