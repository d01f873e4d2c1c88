"""Client side of a WebSocket (RFC 6455): whole messages in both directions, from any threads."""

import base64
import hashlib
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TypeVar

from .cancel import current
from .errors import ConnectionError
from .transport import Transport, await_ready

T = TypeVar("T")

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
ACCEPT = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""GUID of RFC 6455, 1.3, with which a server proves that it supports the protocol."""
FINAL = MASKED = 0x80
ENDED = (1000).to_bytes(2, "big")
"""Close code of the service after the terminal's end; other codes come with a reason."""
MAX_BYTES = 16 * 1024 * 1024
PART_BYTES = 64 * 1024


def connect(transport: Transport, path: str, protocols: Sequence[str], seconds: float) -> "WebSocket":
    key = base64.b64encode(os.urandom(16)).decode()
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": key,
        "Sec-WebSocket-Protocol": ", ".join(protocols),
    }
    answer = transport.upgrade(path, headers, seconds)
    accepted = base64.b64encode(hashlib.sha1((key + ACCEPT).encode()).digest()).decode()
    if answer.headers["sec-websocket-accept"] != accepted:
        answer.close()
        raise ConnectionError("The answer is not a WebSocket of roomd.")
    return WebSocket(*answer.taken_over())


class WebSocket:
    def __init__(self, wire: socket.socket, early: bytes = b"") -> None:
        """`early` are the bytes that were already read from it."""
        wire.setblocking(False)
        self._wire = wire
        self._read = bytearray(early)
        # TLS allows one thread at a time, which never blocks. Reentrant: a signal handler may close it in its own thread.
        self._inside = threading.RLock()
        self._sending = threading.Lock()
        self._is_closed = False
        self._waiting = 0

    def send(self, kind: int, payload: bytes) -> None:
        rest = _frame(kind, payload)
        with self._sending:
            while rest:
                rest = rest[self._when_ready(lambda: self._wire.send(rest), to_write=True) :]

    def receive(self) -> tuple[int, bytes] | None:
        """The next message, TEXT or BINARY; None after its end, or after `close`."""
        try:
            return None if self._is_closed else self._next()
        except ConnectionError:
            if self._is_closed:
                return None
            raise

    def close(self) -> None:
        """Closes it, and aborts sends and receives of other threads."""
        self._is_closed = True
        # Shuts down the plain socket, also below TLS: closing alone wakes no waiting thread.
        with suppress(OSError):
            socket.socket.shutdown(self._wire, socket.SHUT_RDWR)
        self._release()

    def _next(self) -> tuple[int, bytes] | None:
        kind, message = 0, bytearray()
        while True:
            first, second = self._take(2)
            size = second & 0x7F
            if size >= 126:
                size = int.from_bytes(self._take(2 if size == 126 else 8), "big")
            if second & MASKED or len(message) + size > MAX_BYTES:
                raise ConnectionError("Invalid WebSocket frame: it is masked, or its message is too long.")
            payload, opcode = self._take(size), first & 0x0F
            if opcode == CLOSE:
                self.send(CLOSE, payload[:2])
                if payload[:2] == ENDED:
                    return None
                reason = payload[2:].decode(errors="replace")
                raise ConnectionError(f"The terminal was left: {reason}." if reason else "The connection broke.")
            if opcode == PING:
                self.send(PONG, payload)
            elif opcode != PONG:
                # Opcode 0 continues the previous message.
                kind = opcode or kind
                message += payload
                if first & FINAL:
                    return kind, bytes(message)

    def _take(self, size: int) -> bytes:
        while len(self._read) < size:
            part = self._when_ready(lambda: self._wire.recv(PART_BYTES), to_write=False)
            if not part:
                raise ConnectionError("The connection broke.")
            self._read += part
        taken = bytes(self._read[:size])
        del self._read[:size]
        return taken

    def _when_ready(self, act: Callable[[], T], to_write: bool) -> T:
        while True:
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
            except OSError as error:
                raise ConnectionError("The connection broke.") from error
            with self._kept(), current().breaking(self._wire):
                await_ready(self._wire, writes)

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
                self._wire.close()


def _frame(kind: int, payload: bytes) -> bytes:
    size = len(payload)
    if size < 126:
        head = bytes([FINAL | kind, MASKED | size])
    elif size < 1 << 16:
        head = bytes([FINAL | kind, MASKED | 126]) + size.to_bytes(2, "big")
    else:
        head = bytes([FINAL | kind, MASKED | 127]) + size.to_bytes(8, "big")
    mask = os.urandom(4)
    key = (mask * (size // 4 + 1))[:size]
    masked = int.from_bytes(payload, "big") ^ int.from_bytes(key, "big")
    return head + mask + masked.to_bytes(size, "big")
