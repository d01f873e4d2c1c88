"""Owns breaking off calls from another thread: what waits for the service ends at once."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType

from .errors import Cancelled

LOOK_SECONDS = 0.05
"""How often who waits for a lock looks whether it is cancelled: a lock cannot be broken off."""


class Cancel:
    """What a thread calls `with` this ends with `Cancelled` as soon as any thread calls `cancel()`.

    It ends the waiting. What the service has begun goes on.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._sockets: set[socket.socket] = set()

    @property
    def cancelled(self) -> bool:
        return self._done.is_set()

    def cancel(self) -> None:
        with self._lock:
            self._done.set()
            for each in self._sockets:
                # Of the plain socket, also below TLS: whoever reads wakes up.
                with suppress(OSError):
                    socket.socket.shutdown(each, socket.SHUT_RDWR)

    def check(self) -> None:
        if self._done.is_set():
            raise Cancelled("The call was cancelled.")

    def pause(self, seconds: float) -> None:
        self._done.wait(seconds)
        self.check()

    @contextmanager
    def turn(self, lock: threading.Lock, seconds: float) -> Iterator[bool]:
        """Has the lock as soon as it is free; false when it is not within so many seconds."""
        deadline = time.monotonic() + seconds
        while not (has := lock.acquire(timeout=max(0.0, min(LOOK_SECONDS, deadline - time.monotonic())))):
            self.check()
            if time.monotonic() >= deadline:
                break
        try:
            yield has
        finally:
            if has:
                lock.release()

    @contextmanager
    def breaking(self, each: socket.socket) -> Iterator[None]:
        """Has the socket broken off with what is done on it meanwhile."""
        with self._lock:
            self.check()
            self._sockets.add(each)
        try:
            yield
        finally:
            with self._lock:
                self._sockets.discard(each)
            # What was broken off looks like an end, or like a fault.
            self.check()

    def __enter__(self) -> "Cancel":
        _calling.cancels.append(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        _calling.cancels.pop()


class _Calling(threading.local):
    """Of each thread: what its calls are cancelled by, the innermost last."""

    def __init__(self) -> None:
        self.cancels = [Cancel()]


_calling = _Calling()


def current() -> Cancel:
    return _calling.cancels[-1]
