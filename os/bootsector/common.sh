# Shared by the scripts of this OS; the layout of the disk is described in boot.s.

LC_ALL=C
export LC_ALL

MAGIC=GNTBOOT1
GREETING_MAX=190
NAME_MAX=253

die() {
    printf 'bootsector: %s\n' "$*" >&2
    exit 1
}

# The path of the first disk.
first_disk() {
    [ "${DISK_COUNT:-0}" -gt 0 ] ||
        die "${INSTANCE_NAME:-the instance} has no disk: this OS needs one to boot from"
    [ -n "${DISK_0_PATH:-}" ] ||
        die "disk 0 has no path on this node, only ${DISK_0_URI:-nothing}: this OS needs a path"
    writable "$DISK_0_PATH"
    printf '%s\n' "$DISK_0_PATH"
}

writable() {
    [ -f "$1" ] || [ -b "$1" ] || die "$1 is no file and no block device"
    [ -w "$1" ] || die "$1 cannot be written"
}

# size DISK: its length in bytes.
size() {
    if [ -b "$1" ]; then
        blockdev --getsize64 "$1"
    else
        stat -L -c %s "$1"
    fi
}

# The greeting of this instance, checked.
greeting() {
    text=${OSP_GREETING-Hello, this is}
    case $text in
        *[!\ -~]*) die 'the parameter greeting may have printable ASCII characters only' ;;
    esac
    [ "${#text}" -le "$GREETING_MAX" ] ||
        die "the parameter greeting has ${#text} characters: at most $GREETING_MAX fit"
    printf '%s' "$text"
}

# field SIZE TEXT: the text, filled up with zero bytes.
field() {
    printf '%s\000' "$2" | dd bs="$1" conv=sync status=none
}

# The name of the instance, cut to what fits.
name_field() {
    field 256 "$(printf "%.${NAME_MAX}s" "${INSTANCE_NAME:?}")"
}
