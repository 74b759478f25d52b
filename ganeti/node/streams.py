"""Streams of bytes from and to disks, with or without a program.

A dump is what the export script of an OS definition writes, or the plain content of the disk.
"""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol

from ganeti import errors
from ganeti.base import process, sparse

log = logging.getLogger(__name__)

CHUNK = sparse.CHUNK
#: Bytes after which a target is waited for, so that the end takes no minutes.
_FLUSH_EVERY = 512 * 1024 * 1024
#: Last lines of what a tool says that go into an error.
_TAIL = 400
_ZEROS = bytes(CHUNK)
#: Descriptor for the size of a dump, for export scripts. One digit, as dash knows no others.
_SIZE_FD = 3
#: Starts a program with its input as that descriptor, and nothing to read.
_MOVE_INPUT = ("/bin/sh", "-c", f'exec {_SIZE_FD}>&0 </dev/null && exec "$@"', "sh")
#: Options of tools that are not a program of that name.
_TOOLS = {
    "gzip": ("gzip", "-c"),
    "gzip-fast": ("gzip", "-c", "-1"),
    "gzip-slow": ("gzip", "-c", "-9"),
    "lzop": ("lzop", "-c"),
}
#: Compression of content that is not compressed.
PLAIN = "none"


def pack_argv(tool: str) -> list[str]:
    """The program that compresses its input. Pure."""
    return list(_TOOLS.get(tool, (tool,)))


def unpack_argv(tool: str) -> list[str]:
    """The program that decompresses its input. Pure."""
    name, *_options = _TOOLS.get(tool, (tool,))
    return [name, "-d", "-c"] if tool in _TOOLS else [name, "-d"]


class Children:
    """The programs of one transfer; killed together when it ends early."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: list[subprocess.Popen[bytes]] = []
        self._killed = False

    def start(
        self,
        argv: Sequence[str],
        *,
        log_to: BinaryIO | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: int = subprocess.PIPE,
        output: BinaryIO | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a program whose input and output are pipes; BlockDeviceError.

        ``stdin`` is a descriptor for its input, ``output`` a file for its output, instead.
        """
        try:
            child = subprocess.Popen(
                list(argv),
                stdin=stdin,
                stdout=subprocess.PIPE if output is None else output,
                stderr=subprocess.PIPE if log_to is None else log_to,
                env={"PATH": process.search_path(), "LC_ALL": "C"} if env is None else dict(env),
                cwd=cwd,
                start_new_session=True,
            )
        except OSError as err:
            raise errors.BlockDeviceError(f"cannot run {argv[0]}: {err.strerror}") from err
        with self._lock:
            self._running.append(child)
            killed = self._killed
        if killed:
            process.kill_group(child.pid)
        return child

    def kill(self) -> None:
        """Kill all of them; also those that are started later."""
        with self._lock:
            self._killed = True
            running = list(self._running)
        for child in running:
            if child.poll() is None:
                process.kill_group(child.pid)

    def end(self) -> None:
        """Kill what still runs, and take the pipes back."""
        self.kill()
        for child in self._running:
            for stream in (child.stdin, child.stdout, child.stderr):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(process.KILL_WAIT)


def check_end(child: subprocess.Popen[bytes], what: str, log_path: Path | None = None) -> None:
    """Wait for a program whose output has ended; BlockDeviceError when it failed."""
    output = b""
    if child.stderr is not None:
        output = child.stderr.read()[-_TAIL:]
    code = child.wait()
    if code:
        how = f"was killed by signal {-code}" if code < 0 else f"failed with exit code {code}"
        text = output.decode("utf-8", "replace").strip()
        if log_path is not None:
            text = f"its output is in {log_path}"
        raise errors.BlockDeviceError(f"{what} {how}" + (f": {text}" if text else ""))


# where the bytes come from -------------------------------------------------------------------


class Source(Protocol):
    """Something to be sent."""

    def size(self) -> int | None:
        """Bytes to come, None when nobody knows."""

    def chunks(self) -> Iterator[bytes | memoryview]:
        """The bytes, in order; raises when they are not complete."""


@dataclass
class Content:
    """The plain content of a file or device; holes are not read."""

    path: str
    length: int | None = None

    def size(self) -> int | None:
        with open(self.path, "rb", buffering=0) as stream:
            found = os.lseek(stream.fileno(), 0, os.SEEK_END)
        self.length = found
        return found

    def chunks(self) -> Iterator[bytes | memoryview]:
        with open(self.path, "rb", buffering=0) as stream:
            size = os.lseek(stream.fileno(), 0, os.SEEK_END)
            for length, data in sparse.pieces(stream.fileno(), size):
                if data is not None:
                    yield data
                    continue
                for start in range(0, length, CHUNK):
                    yield memoryview(_ZEROS)[: min(CHUNK, length - start)]


@dataclass
class Program:
    """Stream from the standard output of a script.

    It may write the size in bytes to a descriptor, whose number ``make_env`` is called with.
    """

    children: Children
    argv: Sequence[str]
    make_env: Callable[[int], Mapping[str, str]]
    cwd: Path
    log_path: Path
    _size: list[int] = field(default_factory=list)

    def size(self) -> int | None:
        return self._size[0] if self._size else None

    def chunks(self) -> Iterator[bytes | memoryview]:
        reader, writer = os.pipe()
        try:
            with self.log_path.open("ab") as out:
                child = self.children.start(
                    [*_MOVE_INPUT, *self.argv],
                    log_to=out,
                    env=self.make_env(_SIZE_FD),
                    cwd=self.cwd,
                    stdin=writer,
                )
        except BaseException:  # an interrupt too: close the pipe and raise it
            os.close(reader)
            raise
        finally:
            os.close(writer)
        watcher = threading.Thread(target=self._read_size, args=(reader,), name="exp-size")
        watcher.start()
        try:
            assert child.stdout is not None
            while data := os.read(child.stdout.fileno(), CHUNK):
                yield data
            check_end(child, f"the OS script {self.argv[0]}", self.log_path)
        except GeneratorExit:
            process.kill_group(child.pid)
            raise
        finally:
            if child.poll() is None:
                process.kill_group(child.pid)
            watcher.join()

    def _read_size(self, reader: int) -> None:
        with open(reader, "rb") as stream:
            text = stream.read(64).strip()
        if text.isdigit():
            self._size.append(int(text))


def pack(
    source: Iterable[bytes | memoryview], tool: str, children: Children
) -> Iterator[bytes | memoryview]:
    """A stream, compressed by a tool; ``none`` leaves it as it is."""
    if tool == PLAIN:
        yield from source
        return
    yield from _filter(source, pack_argv(tool), children)


def unpack(
    source: Iterable[bytes | memoryview], tool: str, children: Children
) -> Iterator[bytes | memoryview]:
    """A stream that a tool has compressed, as it was before."""
    if tool == PLAIN:
        yield from source
        return
    yield from _filter(source, unpack_argv(tool), children)


def _filter(
    source: Iterable[bytes | memoryview], argv: Sequence[str], children: Children
) -> Iterator[bytes | memoryview]:
    child = children.start(argv)
    assert child.stdin is not None
    assert child.stdout is not None
    failure: list[Exception] = []
    complete = threading.Event()

    def feed() -> None:
        try:
            with child.stdin as stream:  # type: ignore[union-attr]
                for data in source:
                    stream.write(data)
            complete.set()
        except BrokenPipeError:
            pass  # the program says why at its end
        except (OSError, errors.GanetiError) as err:  # raised again where it is waited for
            failure.append(err)
            process.kill_group(child.pid)

    feeder = threading.Thread(target=feed, name="compress", daemon=True)
    feeder.start()
    try:
        while data := os.read(child.stdout.fileno(), CHUNK):
            yield data
        feeder.join()
        if failure:
            raise failure[0]
        check_end(child, argv[0])
        if not complete.is_set():
            raise errors.BlockDeviceError(f"{argv[0]} ended before it had read all")
    finally:
        if child.poll() is None:
            process.kill_group(child.pid)


# where they go -------------------------------------------------------------------------------


def write_to(path: str, source: Iterable[bytes | memoryview], *, limit: int | None) -> int:
    """Write a stream to a file or device, zeros as holes; returns the bytes.

    ``limit`` is what a disk takes; None is for a file, which becomes as long as the stream.

    Raises:
        OSError, BlockDeviceError: writing failed, or the stream is longer than the disk.
    """
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    if limit is None:
        flags |= os.O_CREAT | os.O_TRUNC
    fd = os.open(path if limit is None else os.path.realpath(path), flags, 0o600)
    done = flushed = 0
    try:
        for data in source:
            if limit is not None and done + len(data) > limit:
                raise errors.BlockDeviceError(f"{path} has {limit} bytes, and the dump has more")
            done = _write_one(fd, done, bytes(data), clear=limit is not None)
            if done - flushed >= _FLUSH_EVERY:
                os.fdatasync(fd)
                flushed = done
        if limit is None:
            os.ftruncate(fd, done)
        os.fsync(fd)
    finally:
        os.close(fd)
    return done


def _write_one(fd: int, position: int, data: bytes, *, clear: bool) -> int:
    for size, part in sparse.split(data) if data else ():
        if part is not None:
            sparse.write(fd, position, part)
        elif clear:
            for _step in sparse.clear(fd, position, size):
                pass
        position += size
    return position


def feed_program(
    children: Children,
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: Path,
    log_path: Path,
    source: Iterable[bytes | memoryview],
) -> None:
    """Give a stream to an import script; BlockDeviceError when it fails or reads too little."""
    what = f"the OS script {argv[0]}"
    with log_path.open("ab") as out:
        child = children.start(argv, log_to=out, env=env, cwd=cwd, output=out)
    assert child.stdin is not None
    try:
        for data in source:
            try:
                child.stdin.write(data)
            except BrokenPipeError:
                with contextlib.suppress(OSError):
                    child.stdin.close()
                check_end(child, what, log_path)
                raise errors.BlockDeviceError(
                    f"{what} ended before it had read all; its output is in {log_path}"
                ) from None
        with contextlib.suppress(BrokenPipeError):
            child.stdin.close()
        check_end(child, what, log_path)
    finally:
        if child.poll() is None:
            process.kill_group(child.pid)
