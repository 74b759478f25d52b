"""Messages of a VNC client, read so that a user who may only look cannot type; pure.

Sources: RFC 6143 (RFB 3.8) and the extensions that noVNC uses.
"""

from __future__ import annotations

from collections.abc import Callable

_VERSION = 12
#: Security types of which the length of the client's answer is known: none, and a password.
_ANSWERS = {1: 0, 2: 16}
#: Length of messages of a fixed size, by their type.
_FIXED = {0: 20, 3: 10, 4: 8, 5: 6, 150: 10}
_ENCODINGS, _CUT_TEXT, _FENCE, _DESKTOP, _QEMU = 2, 6, 248, 251, 255
#: Messages that change something in the guest: keys, pointer, clipboard, size, QEMU's keys.
_INPUT = frozenset({4, 5, _CUT_TEXT, _DESKTOP, _QEMU})
_LONGEST = 256 * 1024


class RfbError(Exception):
    """The client says something that cannot be followed."""


class ClientFilter:
    """Passes the messages of a client on; of one who only looks none that change something."""

    def __init__(self, *, view: bool) -> None:
        self._view = view
        self._rest = bytearray()
        self._stage: Callable[[], tuple[int, bool]] = self._read_version
        self._opaque = False
        #: whether the last bytes had a key, a move of the pointer or the like
        self.had_input = False

    def feed(self, data: bytes) -> bytes:
        """Bytes of the client; those that go on to the guest.

        Raises:
            RfbError: only for one who looks.
        """
        self.had_input = self._opaque
        if self._opaque:
            return data
        self._rest += data
        passed = bytearray()
        try:
            while self._rest:
                size, allowed = self._stage()
                if not size or len(self._rest) < size:
                    break
                passed += self._rest[:size] if allowed else b""
                del self._rest[:size]
        except RfbError:
            if self._view:
                raise
            # Whoever may type needs no filter.
            self._opaque = self.had_input = True
            passed += self._rest
            self._rest.clear()
        return bytes(passed)

    # Each returns the size of what comes next (0: not known yet), and whether it continues.

    def _read_version(self) -> tuple[int, bool]:
        if len(self._rest) >= _VERSION:
            if not self._rest.startswith((b"RFB 003.007\n", b"RFB 003.008\n")):
                raise RfbError("only versions 3.7 and 3.8 of RFB are understood")
            self._stage = self._read_security
        return _VERSION, True

    def _read_security(self) -> tuple[int, bool]:
        answer = _ANSWERS.get(self._rest[0])
        if answer is None:
            raise RfbError(f"the security type {self._rest[0]} is not understood")
        size = answer
        self._stage = (lambda: self._read_answer(size)) if size else self._read_init
        return 1, True

    def _read_answer(self, size: int) -> tuple[int, bool]:
        if len(self._rest) >= size:
            self._stage = self._read_init
        return size, True

    def _read_init(self) -> tuple[int, bool]:
        # A client that does not share the display would end the consoles of others.
        self._rest[0] = 1
        self._stage = self._read_message
        return 1, True

    def _read_message(self) -> tuple[int, bool]:
        kind = self._rest[0]
        size = _FIXED.get(kind) or self._find_size(kind)
        if size > _LONGEST:
            raise RfbError("a message is too long")
        is_input = kind in _INPUT
        if is_input and size and len(self._rest) >= size:
            self.had_input = True
        return size, not (self._view and is_input)

    def _find_size(self, kind: int) -> int:
        """Size of a message of variable length; 0 when its beginning is not complete."""
        rest = self._rest
        if kind == _ENCODINGS:
            return 4 + 4 * int.from_bytes(rest[2:4], "big") if len(rest) >= 4 else 0
        if kind == _CUT_TEXT:
            # A negative length is that of the extended clipboard.
            return 8 + abs(int.from_bytes(rest[4:8], "big", signed=True)) if len(rest) >= 8 else 0
        if kind == _FENCE:
            return 9 + rest[8] if len(rest) >= 9 else 0
        if kind == _DESKTOP:
            return 8 + 16 * rest[6] if len(rest) >= 8 else 0
        if kind == _QEMU:
            if len(rest) < 2:
                return 0
            if rest[1] == 0:
                return 12
        raise RfbError(f"the message {kind} is not understood")
