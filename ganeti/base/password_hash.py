"""SHA-512 crypt, the form of passwords in ``/etc/shadow`` that every Linux system knows.

Python 3.13 has no module for it any more, and cloud-init does not take bcrypt for a hash.
"""

from __future__ import annotations

import hashlib
import secrets

_ALPHABET = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ROUNDS = 5000
_SALT_LENGTH = 16


def make(password: str, salt: str = "") -> str:
    """``$6$<salt>$<hash>`` of a password, with a new salt unless one is given; some 10 ms."""
    salt = salt or "".join(secrets.choice(_ALPHABET) for _ in range(_SALT_LENGTH))
    return f"$6${salt}${_encode(_digest(password.encode(), salt.encode()))}"


def _digest(word: bytes, salt: bytes) -> bytes:
    other = hashlib.sha512(word + salt + word).digest()
    first = hashlib.sha512(word + salt + _stretch(other, len(word)))
    length = len(word)
    while length:
        first.update(other if length & 1 else word)
        length >>= 1
    found = first.digest()
    words = _stretch(hashlib.sha512(word * len(word)).digest(), len(word))
    salts = _stretch(hashlib.sha512(salt * (16 + found[0])).digest(), len(salt))
    for number in range(_ROUNDS):
        odd = number & 1
        found = hashlib.sha512(
            (words if odd else found)
            + (salts if number % 3 else b"")
            + (words if number % 7 else b"")
            + (found if odd else words)
        ).digest()
    return found


def _stretch(data: bytes, length: int) -> bytes:
    return (data * (length // len(data) + 1))[:length]


def _encode(digest: bytes) -> str:
    """Base 64 in the order of bytes that crypt(3) has."""
    text, order = "", (0, 21, 42)
    for _ in range(21):
        first, second, third = (digest[place] for place in order)
        text += _characters(first << 16 | second << 8 | third, 4)
        order = (order[1] + 1, order[2] + 1, order[0] + 1)
    return text + _characters(digest[63], 2)


def _characters(value: int, count: int) -> str:
    return "".join(_ALPHABET[value >> 6 * number & 63] for number in range(count))
