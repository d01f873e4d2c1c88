"""Owns a terminal of a sandbox: its output as it comes, and typing into it by a WebSocket."""

import json
from collections.abc import Generator, Iterator
from types import TracebackType
from typing import Any, Unpack

from ._generated.schemas import Terminal as TerminalRecord
from ._generated.schemas import TerminalCloseResult, TerminalTicket
from .client import Client
from .execution import SandboxName
from .transport import CallOptions, Calls
from .websocket import BINARY, TEXT, WebSocket


PROTOCOL, TOKEN_PREFIX = "roomd.terminal", "roomd.token."
ATTACH_SECONDS = 30.0
"""How long a service may take to let somebody in."""


class AttachedTerminal:
    """A terminal with somebody at it."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket

    def write(self, data: str | bytes) -> None:
        self._socket.send(BINARY, data.encode() if isinstance(data, str) else data)

    def resize(self, rows: int, cols: int) -> None:
        self._socket.send(TEXT, json.dumps({"type": "resize", "rows": rows, "cols": cols}).encode())

    def output(self) -> Iterator[bytes]:
        """What it shows, until it ends. Raises ConnectionError when it breaks before, or somebody takes over."""
        while (message := self._socket.receive()) is not None:
            kind, payload = message
            if kind == BINARY:
                yield payload

    def close(self) -> None:
        """Leaves it; it goes on."""
        self._socket.close()

    def __enter__(self) -> "AttachedTerminal":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class Terminal:
    def __init__(self, client: Client, sandbox: SandboxName, id: str) -> None:
        self.id = id
        self._client = client
        self._name = {**sandbox, "terminal_id": id}

    def get(self, **options: Unpack[CallOptions]) -> TerminalRecord:
        return self._client.call("terminal_get", options, **self._name)

    def watch(self) -> Generator[dict[str, Any], None, None]:
        """What it shows, from its beginning as far as it is kept, without typing: it goes on over lost connections."""
        return self._client.events("terminal_watch", **self._name)

    def token(self, **options: Unpack[CallOptions]) -> TerminalTicket:
        """A short-lived token to attach with, for a program that has no key."""
        return self._client.call("terminal_token", options, **self._name)

    def attach(self, *, takeover: bool = False, **options: Unpack[CallOptions]) -> AttachedTerminal:
        """Types into it. Who types already goes on alone, unless it is a takeover."""
        calls = Calls(options)
        ticket = self.token(**calls.next())
        path = ticket["ws_path"] + ("?takeover=true" if takeover else "")
        left = calls.left_ms
        seconds = ATTACH_SECONDS if left is None else min(ATTACH_SECONDS, left / 1000)
        return AttachedTerminal(self._client.socket(path, [PROTOCOL, TOKEN_PREFIX + ticket["token"]], seconds))

    def end(self, **options: Unpack[CallOptions]) -> TerminalCloseResult:
        """Ends it and everything that was started in it."""
        return self._client.call("terminal_close", options, **self._name)
