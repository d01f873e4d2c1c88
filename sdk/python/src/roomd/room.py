"""A room: the sandboxes of a group of agents, their drive and their messages."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Any, Literal, Unpack

from ._generated.schemas import Agent as AgentRecord
from ._generated.schemas import AuditRecord, RoomRestoreResult
from ._generated.schemas import Room as RoomRecord
from ._generated.schemas import Sandbox as SandboxRecord
from .agent import Agent, Destination, MessageOptions, Outgoing
from .client import Client, given
from .coroutines import aio, aiter_of, blocking, iterating
from .drive import Drive
from .records import Checkpoint, MessageReceipt, SentMessage
from .sandbox import Sandbox, SandboxOptions, gone_is_done
from .spellings import strict
from .transport import CallOptions

OPERATOR = "operator"
"""Sender of messages from outside of the room."""


@strict
class Room:
    """A room: the sandboxes of a group of agents, their drive and their messages."""

    def __init__(self, client: Client, id: str, is_own: bool = False, keep: bool = False) -> None:
        """A room that exists, by its name. No call is made.

        With `is_own` the end of its `with` block destroys it, and deletes its drive unless `keep`.
        """
        self.id = id
        """Name of the room."""
        self._keep = keep
        self._is_own = is_own
        self.drive = Drive(client, id)
        """Files that all sandboxes of the room share."""
        self._client = client
        # Agents hold the read positions of their inboxes.
        self._agents: dict[str, Agent] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}(id={self.id!r})"

    @blocking
    async def get(self, **options: Unpack[CallOptions]) -> RoomRecord:
        """Its record."""
        return await self._client._call("room_get", options, room_id=self.id)

    @blocking
    async def create_sandbox(self, agent_id: str, **options: Unpack[SandboxOptions]) -> Sandbox:
        """Creates a sandbox for an agent, and waits until it runs commands."""
        return await aio(Sandbox.create_in)(self._client, self.id, agent_id, self.agent(agent_id), **options)

    def sandbox(self, agent_id: str) -> Sandbox:
        """A sandbox that exists, by its agent. No call is made."""
        return Sandbox(self._client, self.id, agent_id, self.agent(agent_id))

    @iterating
    def sandboxes(self, **options: Unpack[CallOptions]) -> AsyncGenerator[SandboxRecord, None]:
        """Yields the records of its sandboxes."""
        return aiter_of(self._client.items)("sandbox_list", options, room_id=self.id)

    def agent(self, id: str) -> Agent:
        """An agent of the room, by its name; it needs no sandbox."""
        return self._agents.setdefault(id, Agent(self._client, self.id, id))

    @iterating
    def agents(self, **options: Unpack[CallOptions]) -> AsyncGenerator[AgentRecord, None]:
        """Yields the records of its agents."""
        return aiter_of(self._client.items)("agent_list", options, room_id=self.id)

    @blocking
    async def send(self, destination: Destination, payload: Any, **options: Unpack[MessageOptions]) -> SentMessage:
        """Sends a message as the operator."""
        return await aio(self.agent(OPERATOR).send)(destination, payload, **options)

    @blocking
    async def send_many(self, messages: Sequence[Outgoing], **options: Unpack[CallOptions]) -> list[MessageReceipt]:
        """Sends up to 256 messages as the operator, in one call, all or none."""
        return await aio(self.agent(OPERATOR).send_many)(messages, **options)

    @iterating
    async def events(self, *, after: int | None = None) -> AsyncGenerator[AuditRecord, None]:
        """Yields audit records from now on, or those after the record with number `after`; 0 is the start of the room."""
        if after is None:
            # Determine the current position first: the connection may break before the first event.
            newest = (await self._client._call("audit_list", None, room_id=self.id, limit=1))["items"]
            after = newest[0]["seq"] if newest else 0
        records: Any = aiter_of(self._client.events)("room_events", room_id=self.id, after=after)
        async with aclosing(records):
            async for record in records:
                yield record

    @blocking
    async def checkpoint(self, *, name: str | None = None, **options: Unpack[CallOptions]) -> Checkpoint:
        """Saves the state of the room at one instant: sandboxes, drive, messages and barriers."""
        return Checkpoint(await self._client._call("room_checkpoint", options, room_id=self.id, **given(name=name)))

    @blocking
    async def fork(self, room_id: str, *, checkpoint_id: str | None = None, **options: Unpack[CallOptions]) -> "Room":
        """Creates another room from the current state, or from a checkpoint; its sandboxes continue there."""
        input = given(checkpoint_id=checkpoint_id)
        await self._client._call("room_fork", options, source_room_id=self.id, room_id=room_id, **input)
        return Room(self._client, room_id, is_own=True)

    @blocking
    async def restore(self, checkpoint_id: str, **options: Unpack[CallOptions]) -> RoomRestoreResult:
        """Restores the room to a checkpoint."""
        return await self._client._call("room_restore", options, room_id=self.id, checkpoint_id=checkpoint_id)

    @blocking
    async def destroy(self, *, drive: Literal["retain", "delete"] | None = None, **options: Unpack[CallOptions]) -> None:
        """Destroys the room and its sandboxes; a room that has ended is no error.

        The drive is kept for a day, unless `drive` is "delete".
        """
        with gone_is_done():
            await self._client._call("room_destroy", options, room_id=self.id, **given(drive=drive))

    def __enter__(self) -> "Room":
        return self

    @blocking
    async def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        if self._is_own:
            await aio(self.destroy)(drive="retain" if self._keep else "delete")
