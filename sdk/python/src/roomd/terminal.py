"""Owns a terminal of a sandbox: its output as it comes, and tokens for who types into it by a WebSocket."""

from collections.abc import Generator
from typing import Any, Unpack

from ._generated.schemas import Terminal as TerminalRecord
from ._generated.schemas import TerminalCloseResult, TerminalTicket
from .client import Client
from .execution import SandboxName
from .transport import CallOptions


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

    def end(self, **options: Unpack[CallOptions]) -> TerminalCloseResult:
        """Ends it and everything that was started in it."""
        return self._client.call("terminal_close", options, **self._name)
