"""Client side of a WebSocket (RFC 6455): whole messages in both directions."""

import base64
import hashlib
import os
from collections.abc import Sequence

from .coroutines import blocking
from .errors import ConnectionError
from .network import Network, Received
from .transport import Transport

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
ACCEPT = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""GUID of RFC 6455, 1.3, with which a server proves that it supports the protocol."""
FINAL = MASKED = 0x80
ENDED = (1000).to_bytes(2, "big")
"""Close code of the service after the terminal's end; other codes come with a reason."""
MAX_BYTES = 16 * 1024 * 1024


async def connect(transport: Transport, path: str, protocols: Sequence[str], seconds: float) -> "WebSocket":
    key = base64.b64encode(os.urandom(16)).decode()
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": key,
        "Sec-WebSocket-Protocol": ", ".join(protocols),
    }
    answer = await transport.upgrade(path, headers, seconds)
    accepted = base64.b64encode(hashlib.sha1((key + ACCEPT).encode()).digest()).decode()
    if answer.headers["sec-websocket-accept"] != accepted:
        answer.close()
        raise ConnectionError("The answer is not a WebSocket of roomd.")
    return WebSocket(transport.network, answer.taken_over())


class WebSocket:
    """Messages of a connection. Any threads may send, receive and close."""

    def __init__(self, network: Network, received: Received) -> None:
        """A connection on which the protocol was agreed, with the bytes that it has received."""
        self._received = received
        self._sending = network.lock()
        self._is_closed = False
        # The message of which fragments have arrived.
        self._kind = 0
        self._message = bytearray()

    @blocking
    async def send(self, kind: int, payload: bytes) -> None:
        await self._send(kind, payload)

    @blocking
    async def receive(self) -> tuple[int, bytes] | None:
        """The next message, TEXT or BINARY; None after its end, or after `close`."""
        try:
            return None if self._is_closed else await self._next()
        except ConnectionError:
            if self._is_closed:
                return None
            raise

    def close(self) -> None:
        """Closes it, and aborts sends and receives."""
        self._is_closed = True
        self._received.wire.close()

    async def _send(self, kind: int, payload: bytes) -> None:
        async with self._sending.turn():
            try:
                await self._received.wire.write(_frame(kind, payload))
            except ConnectionError:
                raise
            except OSError as error:
                raise ConnectionError("The connection broke.") from error

    async def _next(self) -> tuple[int, bytes] | None:
        while True:
            first, payload = await self._next_frame()
            opcode = first & 0x0F
            if opcode == CLOSE:
                await self._send(CLOSE, payload[:2])
                if payload[:2] == ENDED:
                    return None
                reason = payload[2:].decode(errors="replace")
                raise ConnectionError(f"The terminal was left: {reason}." if reason else "The connection broke.")
            if opcode == PING:
                await self._send(PONG, payload)
            elif opcode != PONG:
                # Opcode 0 continues the previous message.
                self._kind = opcode or self._kind
                self._message += payload
                if first & FINAL:
                    message, self._message = bytes(self._message), bytearray()
                    return self._kind, message

    async def _next_frame(self) -> tuple[int, bytes]:
        """First byte and payload of the next frame, which is taken as a whole: a cancelled wait loses nothing."""
        data = self._received.bytes
        while (sizes := self._sizes_of(data)) is None or len(data) < sum(sizes):
            try:
                is_open = await self._received.more()
            except ConnectionError:
                raise
            except OSError as error:
                raise ConnectionError("The connection broke.") from error
            if not is_open:
                raise ConnectionError("The connection broke.")
        head, size = sizes
        return self._received.take(head)[0], self._received.take(size)

    def _sizes_of(self, data: bytearray) -> tuple[int, int] | None:
        """Lengths of the head and the payload of a frame; None if the head is incomplete."""
        if len(data) < 2:
            return None
        size, head = data[1] & 0x7F, 2
        if size >= 126:
            head = 4 if size == 126 else 10
            if len(data) < head:
                return None
            size = int.from_bytes(data[2:head], "big")
        if data[1] & MASKED or len(self._message) + size > MAX_BYTES:
            raise ConnectionError("Invalid WebSocket frame: it is masked, or its message is too long.")
        return head, size


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
