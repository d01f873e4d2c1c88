"""A terminal of a sandbox: its output as it arrives, and input over a WebSocket."""

import json
from collections.abc import AsyncGenerator
from types import TracebackType
from typing import Any, Unpack

from ._generated.schemas import Terminal as TerminalRecord
from ._generated.schemas import TerminalCloseResult, TerminalTicket
from .client import Client
from .coroutines import aio, aiter_of, blocking, iterating
from .execution import SandboxName
from .spellings import strict
from .transport import CallOptions, Calls
from .websocket import BINARY, TEXT, WebSocket


PROTOCOL, TOKEN_PREFIX = "roomd.terminal", "roomd.token."
ATTACH_SECONDS = 30.0
"""Longest wait for the service to accept the attachment."""


@strict
class AttachedTerminal:
    """A terminal that this program is attached to."""

    def __init__(self, socket: WebSocket) -> None:
        """A terminal on the other side of a WebSocket."""
        self._socket = socket

    @blocking
    async def write(self, data: str | bytes) -> None:
        """Types into it."""
        await aio(self._socket.send)(BINARY, data.encode() if isinstance(data, str) else data)

    @blocking
    async def resize(self, rows: int, cols: int) -> None:
        """Changes its size."""
        await aio(self._socket.send)(TEXT, json.dumps({"type": "resize", "rows": rows, "cols": cols}).encode())

    @iterating
    async def output(self) -> AsyncGenerator[bytes, None]:
        """Yields its output until it ends. Raises ConnectionError if the connection breaks or another client takes over."""
        while (message := await aio(self._socket.receive)()) is not None:
            kind, payload = message
            if kind == BINARY:
                yield payload

    def close(self) -> None:
        """Detaches from it; it keeps running."""
        self._socket.close()

    def __enter__(self) -> "AttachedTerminal":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


@strict
class Terminal:
    """A terminal of a sandbox."""

    def __init__(self, client: Client, sandbox: SandboxName, id: str) -> None:
        """A terminal that exists, by its id. No call is made."""
        self.id = id
        """Its id."""
        self._client = client
        self._name = {**sandbox, "terminal_id": id}

    @blocking
    async def get(self, **options: Unpack[CallOptions]) -> TerminalRecord:
        """Its record."""
        return await self._client._call("terminal_get", options, **self._name)

    @iterating
    def watch(self) -> AsyncGenerator[dict[str, Any], None]:
        """Yields its output from the first byte that is kept, without attaching. Lost connections are resumed."""
        return aiter_of(self._client.events)("terminal_watch", **self._name)

    @blocking
    async def token(self, **options: Unpack[CallOptions]) -> TerminalTicket:
        """A short-lived token to attach with, for a program that has no key."""
        return await self._client._call("terminal_token", options, **self._name)

    @blocking
    async def attach(self, *, takeover: bool = False, **options: Unpack[CallOptions]) -> AttachedTerminal:
        """Attaches to it, for typing. With `takeover` it replaces an attached client; otherwise it fails if there is one."""
        calls = Calls(options)
        ticket = await aio(self.token)(**calls.next())
        path = ticket["ws_path"] + ("?takeover=true" if takeover else "")
        left = calls.left_ms
        seconds = ATTACH_SECONDS if left is None else min(ATTACH_SECONDS, left / 1000)
        return AttachedTerminal(await aio(self._client.socket)(path, [PROTOCOL, TOKEN_PREFIX + ticket["token"]], seconds))

    @blocking
    async def end(self, **options: Unpack[CallOptions]) -> TerminalCloseResult:
        """Ends it and the processes in it."""
        return await self._client._call("terminal_close", options, **self._name)
