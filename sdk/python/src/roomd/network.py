"""Connections, locks and pauses of both kinds of client: those that block the calling thread, and those of asyncio.

Both have the same coroutines. Those of `Blocking` never suspend: `Cancel` aborts them. Those of `Asyncio` are aborted by the
cancellation of their task, and by `close`. They start no thread; asyncio resolves host names in its own.
"""

import asyncio
import math
import select
import socket
import ssl
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

from .cancel import Cancel, current
from .coroutines import run
from .errors import Cancelled, ConnectionError

T = TypeVar("T")
Work = Callable[[], Coroutine[Any, Any, Any]]

PART_BYTES = 64 * 1024
CANCELLED = (Cancelled, asyncio.CancelledError)
"""Exceptions of a cancelled call."""


class Received:
    """The bytes that a wire has received, read by line or by number."""

    def __init__(self, wire: "Wire", early: bytes = b"") -> None:
        self.wire = wire
        self.bytes = bytearray(early)

    async def more(self, seconds: float = math.inf) -> bool:
        """Waits for further bytes; false at the end."""
        part = await self.wire.read(seconds)
        self.bytes += part
        return bool(part)

    async def line(self, most: int, left: Callable[[], float]) -> bytes:
        """The next line with its end; shorter at the end, or if it exceeds `most` bytes."""
        while (end := self.bytes.find(b"\n")) < 0 and len(self.bytes) <= most and await self.more(left()):
            pass
        return self.take(min(most, len(self.bytes)) if end < 0 else end + 1)

    async def some(self, most: int, left: Callable[[], float]) -> bytes:
        """The bytes that arrive next; none at the end."""
        if not self.bytes:
            await self.more(left())
        return self.take(most)

    def take(self, most: int) -> bytes:
        taken = bytes(self.bytes[:most])
        del self.bytes[:most]
        return taken


class Blocking:
    """Calls that block their thread."""

    def check(self) -> None:
        """Raises Cancelled if calls are cancelled."""
        current().check()

    async def connect(self, host: str, port: int, tls: ssl.SSLContext | None, seconds: float) -> "BlockingWire":
        """Connects to the first of the host's addresses that accepts."""

        async def connect(each: socket.socket, address: Any) -> None:
            each.settimeout(seconds)
            with current().breaking(each):
                each.connect(address)

        wire = await _first(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM), connect)
        if tls is not None:
            wire = tls.wrap_socket(wire, server_hostname=host, do_handshake_on_connect=False)
            try:
                with current().breaking(wire):
                    wire.do_handshake()
            except BaseException:
                wire.close()
                raise
        return BlockingWire(wire)

    async def pause(self, seconds: float) -> None:
        current().pause(seconds)

    def lock(self) -> "BlockingLock":
        return BlockingLock()

    async def each(self, works: Iterable[Work], most: int) -> None:
        """Does the works, at most `most` of them in parallel. Raises the first exception."""
        with ThreadPoolExecutor(most) as pool:
            for _ in pool.map(lambda work: run(work()), works):
                pass

    async def finish(self, cleanup: Coroutine[Any, Any, None]) -> None:
        """Waits for the cleanup after a cancelled call, which the cancellation does not abort."""
        with Cancel():
            await cleanup


class BlockingWire:
    """A socket that several threads may use concurrently."""

    def __init__(self, wire: socket.socket) -> None:
        wire.setblocking(False)
        self._socket = wire
        # TLS allows one thread at a time, which never blocks. Reentrant: a signal handler may close it in its own thread.
        self._inside = threading.RLock()
        self._is_closed = False
        self._waiting = 0

    async def read(self, seconds: float = math.inf) -> bytes:
        """The bytes that arrive next, none at its end. Raises TimeoutError."""
        return self._when_ready(lambda: self._socket.recv(PART_BYTES), False, time.monotonic() + seconds)

    async def write(self, data: bytes | memoryview, seconds: float = math.inf) -> None:
        """Sends all bytes. Raises TimeoutError."""
        rest, deadline = memoryview(data), time.monotonic() + seconds
        while rest:
            rest = rest[self._when_ready(lambda: self._socket.send(rest), True, deadline) :]

    def is_quiet(self) -> bool:
        """Whether it is open, and has received nothing that is unread."""
        return not self._is_closed and not await_ready(self._socket, to_write=False, seconds=0)

    def close(self) -> None:
        """Closes it, and aborts its reads and writes."""
        self._is_closed = True
        # Shuts down the plain socket, also below TLS: closing alone wakes no waiting thread.
        with suppress(OSError):
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
        self._release()

    def _when_ready(self, act: Callable[[], T], to_write: bool, deadline: float) -> T:
        while True:
            current().check()
            writes = to_write
            try:
                with self._inside:
                    return act()
            except BlockingIOError:
                pass
            except ssl.SSLWantReadError:
                writes = False
            except ssl.SSLWantWriteError:
                writes = True
            left = deadline - time.monotonic()
            with self._kept(), current().breaking(self._socket):
                if not await_ready(self._socket, writes, None if math.isinf(left) else max(0.0, left)):
                    raise TimeoutError("timed out")

    @contextmanager
    def _kept(self) -> Iterator[None]:
        """Keeps the descriptor open while a thread waits: its number could be reused for another file."""
        with self._inside:
            if self._is_closed:
                raise ConnectionError("The connection was closed.")
            self._waiting += 1
        try:
            yield
        finally:
            with self._inside:
                self._waiting -= 1
                self._release()

    def _release(self) -> None:
        with self._inside:
            if self._is_closed and self._waiting == 0:
                self._socket.close()


def await_ready(wire: socket.socket, to_write: bool, seconds: float | None = None) -> bool:
    """Waits until the socket is readable, or writable; false on timeout."""
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(wire, select.POLLOUT if to_write else select.POLLIN)
        return bool(poll.poll(None if seconds is None else math.ceil(seconds * 1000)))
    readers, writers = ([], [wire]) if to_write else ([wire], [])
    return any(select.select(readers, writers, [], seconds))


class BlockingLock:
    def __init__(self) -> None:
        self._lock = threading.Lock()

    @asynccontextmanager
    async def turn(self, seconds: float = math.inf) -> AsyncIterator[bool]:
        """Waits up to `seconds`, and yields whether it was acquired."""
        with current().turn(self._lock, seconds) as has:
            yield has


class Asyncio:
    """Calls that wait in an event loop."""

    def __init__(self) -> None:
        # The loop of each wait; None once it is aborted.
        self._waits: dict[asyncio.Timeout, asyncio.AbstractEventLoop | None] = {}
        self._cleanups: set[asyncio.Future[None]] = set()

    def check(self) -> None:
        pass

    @asynccontextmanager
    async def limited(self, seconds: float) -> AsyncIterator[None]:
        """Raises TimeoutError if the block takes longer, and Cancelled once calls are aborted."""
        limit = asyncio.timeout(None if math.isinf(seconds) else seconds)
        try:
            async with limit:
                self._waits[limit] = asyncio.get_running_loop()
                yield
        except TimeoutError:
            if self._waits[limit] is None:
                raise Cancelled("The call was cancelled.") from None
            raise
        finally:
            self._waits.pop(limit, None)

    async def connect(self, host: str, port: int, tls: ssl.SSLContext | None, seconds: float) -> "AsyncioWire":
        async def connect(each: socket.socket, address: Any) -> None:
            each.setblocking(False)
            await asyncio.get_running_loop().sock_connect(each, address)

        async with self.limited(seconds):
            return await self.wire(await _first(await _addresses(host, port), connect), tls, host)

    async def wire(
        self, connected: socket.socket, tls: ssl.SSLContext | None = None, host: str | None = None
    ) -> "AsyncioWire":
        loop = asyncio.get_running_loop()
        reader = _Reader(loop=loop)
        reading = asyncio.StreamReaderProtocol(reader, loop=loop)
        name = None if tls is None else host
        transport, _ = await loop.create_connection(lambda: reading, sock=connected, ssl=tls, server_hostname=name)
        return AsyncioWire(self, reader, asyncio.StreamWriter(transport, reading, reader, loop))

    async def pause(self, seconds: float) -> None:
        async with self.limited(math.inf):
            await asyncio.sleep(seconds)

    def lock(self) -> "AsyncioLock":
        return AsyncioLock(self)

    async def each(self, works: Iterable[Work], most: int) -> None:
        places = asyncio.Semaphore(most)

        async def do(work: Work) -> None:
            async with places:
                await work()

        try:
            async with asyncio.TaskGroup() as group:
                for work in works:
                    group.create_task(do(work))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None

    async def finish(self, cleanup: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(cleanup)
        self._cleanups.add(task)
        task.add_done_callback(self._cleanups.discard)
        await asyncio.shield(task)

    def close(self) -> None:
        """Aborts waiting calls: they raise Cancelled."""
        for limit, loop in [*self._waits.items()]:
            if loop is not None:
                _in_loop(loop, partial(self._abort, limit))

    def _abort(self, limit: asyncio.Timeout) -> None:
        if limit in self._waits:
            self._waits[limit] = None
            limit.reschedule(0)


class _Reader(asyncio.StreamReader):
    """A reader that returns all that has arrived before it raises the fault of its connection."""

    fault: Exception | None = None
    unread = 0

    def feed_data(self, data: Any) -> None:
        self.unread += len(data)
        super().feed_data(data)

    def set_exception(self, exc: Exception) -> None:
        self.fault = exc
        self.feed_eof()


class AsyncioWire:
    """An asyncio stream."""

    def __init__(self, network: Asyncio, reader: _Reader, writer: asyncio.StreamWriter) -> None:
        self._network = network
        self._reader = reader
        self._writer = writer
        self._loop = asyncio.get_running_loop()

    async def read(self, seconds: float = math.inf) -> bytes:
        async with self._network.limited(seconds):
            part = await self._reader.read(PART_BYTES)
        self._reader.unread -= len(part)
        if not part and self._reader.fault is not None:
            raise self._reader.fault
        return part

    async def write(self, data: bytes | memoryview, seconds: float = math.inf) -> None:
        async with self._network.limited(seconds):
            for start in range(0, len(data), PART_BYTES):
                self._writer.write(memoryview(data)[start : start + PART_BYTES])
                await self._writer.drain()

    def is_quiet(self) -> bool:
        # A program may use its client in one loop after the other.
        is_open = self._loop is _running_loop() and not self._writer.is_closing() and not self._reader.at_eof()
        return is_open and self._reader.unread == 0

    def close(self) -> None:
        _in_loop(self._loop, lambda: self._writer.transport.abort())


class AsyncioLock:
    def __init__(self, network: Asyncio) -> None:
        self._network = network
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def turn(self, seconds: float = math.inf) -> AsyncIterator[bool]:
        try:
            async with self._network.limited(seconds):
                await self._lock.acquire()
        except TimeoutError:
            yield False
            return
        try:
            yield True
        finally:
            self._lock.release()


Network = Blocking | Asyncio
Wire = BlockingWire | AsyncioWire


async def _first(addresses: Iterable[Any], connect: Callable[[socket.socket, Any], Awaitable[None]]) -> socket.socket:
    """A socket that is connected to the first address that accepts."""
    wrong: OSError | None = None
    for family, kind, protocol, _, address in addresses:
        each = socket.socket(family, kind, protocol)
        try:
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await connect(each, address)
            return each
        except OSError as error:
            each.close()
            wrong = error
        except BaseException:
            each.close()
            raise
    raise wrong or OSError("The host has no address.")


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _in_loop(loop: asyncio.AbstractEventLoop, act: Callable[[], None]) -> None:
    """Acts in a loop, which may run in another thread. Does nothing if the loop is closed."""
    with suppress(RuntimeError):
        if loop.is_running() and loop is not _running_loop():
            loop.call_soon_threadsafe(act)
        else:
            act()


async def _addresses(host: str, port: int) -> list[Any]:
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        # The standard library has no resolver that does not block: asyncio calls it in a thread.
        return await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
