"""The latest of something, bounded by number and by bytes."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Ring(Generic[T]):
    """Forgets the oldest items; not thread-safe."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._items: deque[tuple[T, int]] = deque()
        self._bytes = 0

    def append(self, item: T, size: int) -> None:
        """Add an item of so many bytes; the latest one is kept whatever its size."""
        self._items.append((item, size))
        self._bytes += size
        while len(self._items) > self._most or (
            self._bytes > self._most_bytes and len(self._items) > 1
        ):
            self._bytes -= self._items.popleft()[1]

    def clear(self) -> None:
        self._items.clear()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: int) -> T:
        return self._items[index][0]
