"""Options with data for cloud-init; each names a file, whose content becomes the parameter."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ganeti import errors
from ganeti.cli.fields import override

#: Longest file that is read.
_LARGEST = 1024 * 1024


def read_text(path: str | None) -> str | None:
    """Content of a file; None without one, and an empty text for an empty name.

    Raises:
        OpPrereqError: it cannot be read, is not text, or is too large.
    """
    if not path:
        return path
    name = os.path.expanduser(path)
    try:
        with Path(name).open("rb") as stream:
            data = stream.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise _make_error(f"'{path}' is larger than 1 MiB")
        return data.decode()
    except OSError as err:
        raise _make_error(f"Cannot read '{path}': {err.strerror}") from err
    except UnicodeDecodeError as err:
        raise _make_error(f"'{path}' is not text in UTF-8") from err


def read_keys(paths: Sequence[str]) -> list[str] | None:
    """The public keys of files, a key a line; None without a file. OpPrereqError."""
    if not paths:
        return None
    found: list[str] = []
    for path in paths:
        text = read_text(path) or ""
        if "PRIVATE KEY" in text:
            raise _make_error(f"'{path}' is a private key; give the public one ({path}.pub)")
        lines = [line.strip() for line in text.splitlines()]
        keys = [line for line in lines if line and not line.startswith("#")]
        if path and not keys:
            raise _make_error(f"'{path}' has no SSH key")
        found += keys
    return found


def hash_password(path: str | None) -> str | None:
    """The hash of the password in the first line of a file; only the hash leaves this command.

    None without a file, and an empty text for an empty name.

    Raises:
        OpPrereqError: the file cannot be read, or its first line is empty.
    """
    if not path:
        return path
    word = next(iter((read_text(path) or "").splitlines()), "")
    if not word:
        raise _make_error(f"The first line of '{path}' is empty; it must be the password")
    from ganeti.base import password_hash

    return password_hash.make(word)


def _make_error(text: str) -> errors.OpPrereqError:
    return errors.make_invalid_error(text)


NAMES = {
    "image": override("--image", help="Image to write to the first disk, in place of an OS"),
    "ssh_keys": override(
        "--ssh-key",
        kind="string",
        append=True,
        metavar="<file>",
        help="Public SSH keys that may log in as the user of the image",
        take=read_keys,
    ),
    "password_hash": override(
        "--password-file",
        kind="string",
        metavar="<file>",
        help="Password of the user of the image, in the first line; only its hash is sent",
        take=hash_password,
    ),
    "user_data": override(
        kind="string", metavar="<file>", help="User data for cloud-init", take=read_text
    ),
    "vendor_data": override(
        kind="string", metavar="<file>", help="Vendor data for cloud-init", take=read_text
    ),
    "network_config": override(
        kind="string",
        metavar="<file>",
        help="Network configuration for cloud-init in place of that made of the NICs",
        take=read_text,
    ),
}
