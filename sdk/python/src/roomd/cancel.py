"""Cancellation of calls from another thread."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType

from .errors import Cancelled

LOOK_SECONDS = 0.05
"""Interval at which a wait for a lock checks for cancellation."""


class Cancel:
    """Ends calls that a thread makes `with` it: they raise `Cancelled` once any thread calls `cancel()`.

    Only the waiting ends. The service completes calls that it has started.
    """

    def __init__(self) -> None:
        """Not cancelled yet."""
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._sockets: set[socket.socket] = set()

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._done.is_set()

    def cancel(self) -> None:
        """Cancels pending and later calls."""
        with self._lock:
            self._done.set()
            for each in self._sockets:
                # Shuts down the plain socket, also below TLS: a blocked reader wakes up.
                with suppress(OSError):
                    socket.socket.shutdown(each, socket.SHUT_RDWR)

    def check(self) -> None:
        """Raises Cancelled if it was cancelled."""
        if self._done.is_set():
            raise Cancelled("The call was cancelled.")

    def pause(self, seconds: float) -> None:
        """Sleeps; raises Cancelled once it is cancelled."""
        self._done.wait(seconds)
        self.check()

    @contextmanager
    def turn(self, lock: threading.Lock, seconds: float) -> Iterator[bool]:
        """Waits up to `seconds` for the lock, and yields whether it was acquired."""
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
        """Shuts the socket down if it is cancelled within the block."""
        with self._lock:
            self.check()
            self._sockets.add(each)
        try:
            yield
        finally:
            with self._lock:
                self._sockets.discard(each)
            # A socket that was shut down looks like an end of stream, or like a fault.
            self.check()

    def __enter__(self) -> "Cancel":
        _calling.cancels.append(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        _calling.cancels.pop()


class _Calling(threading.local):
    """Cancel objects of each thread, the innermost last."""

    def __init__(self) -> None:
        self.cancels = [Cancel()]


_calling = _Calling()


def current() -> Cancel:
    return _calling.cancels[-1]
