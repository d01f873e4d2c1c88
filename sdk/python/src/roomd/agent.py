"""An agent of a room: messages, requests and barriers, usable inside and outside of a sandbox."""

import time
import uuid
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Literal, Required, TypedDict, Unpack

from ._generated.schemas import AgentWaitResult
from .client import Client, digest_of, given
from .coroutines import aio, blocking, iterating
from .errors import ProblemError, TimeoutError
from .records import BarrierArriveResult, Message, MessageReceipt, SentMessage
from .spellings import names_of, strict
from .transport import CallOptions, deadline_of

WAIT_MS = 50_000
"""The longest that one call waits; longer waits are several calls."""
DEFAULT_WAIT_MS = 300_000
WAY_MS = 10_000
"""Allowance for the transfer of a response, in addition to the wait."""

_Wanted = tuple[tuple[str, Any], ...]

MessageKind = Literal["event", "request", "response"]


class Topic(TypedDict):
    """The subscribers of a topic, as a destination."""

    topic: str
    """Name of the topic."""


Destination = str | Sequence[str] | Topic
"""Recipients of a message: one agent, several agents, all other agents ("*"), or the subscribers of a topic."""


class MessageOptions(TypedDict, total=False):
    """Options of a message."""

    kind: MessageKind
    """"event" by default."""
    message_id: str
    """Id of the message, unique in the room: the same id is sent once."""
    headers: Mapping[str, str]
    """Metadata in addition to the payload, such as a trace context."""
    ack_required: bool
    """Whether it is redelivered until the recipient acknowledges it."""
    ttl_ms: int
    """Time to live in ms: it expires unread after this time."""


class Outgoing(MessageOptions, total=False):
    """A message of `send_many`."""

    destination: Required[Destination]
    """Its recipients."""
    payload: Required[Any]
    """Its content: any JSON value."""


class Filter(TypedDict, total=False):
    """Filter of messages."""

    topic: str
    """Only messages of this topic."""
    kind: MessageKind
    """Only messages of this kind."""
    source: str
    """Only messages of this sender."""


@strict
class Agent:
    """An agent of a room. It needs no sandbox."""

    def __init__(self, client: Client, room: str, id: str) -> None:
        """An agent, by its room and name. No call is made."""
        self.id = id
        """Name of the agent, unique in the room."""
        self._client = client
        self._room = room
        # Read position in the inbox by filter: one filter's position does not cover messages that only another matches.
        self._places: dict[_Wanted, int] = {}
        # Concurrent waits would get the same message.
        self._turn = client._network.lock()

    @blocking
    async def send(self, destination: Destination, payload: Any, **options: Unpack[MessageOptions]) -> SentMessage:
        """Sends a message. Returns once it is stored durably; it is never dropped."""
        return SentMessage(await self._client._call("agent_send", None, **self._message(destination, payload, options)))

    @blocking
    async def send_many(self, messages: Sequence[Outgoing], **options: Unpack[CallOptions]) -> list[MessageReceipt]:
        """Sends up to 256 messages in one call, in this order, all or none.

        It costs the service a fraction of separate calls. Returns once they are stored durably.
        """
        if (key := options.get("idempotency_key")) is not None:
            # The same key means the same call, also from another process: its messages get the same ids.
            messages = [{"message_id": f"sdk-{digest_of(key)}-{index}", **each} for index, each in enumerate(messages)]
        wanted = [self._outgoing(**message) for message in messages]
        sent = await self._client._call("message_send_many", options, room_id=self._room, messages=wanted)
        return [MessageReceipt(each) for each in sent["messages"]]

    @blocking
    async def request(
        self,
        destination: str,
        payload: Any,
        *,
        wait_ms: float | None = None,
        timeout_ms: float = DEFAULT_WAIT_MS,
        **options: Unpack[MessageOptions],
    ) -> Message:
        """Sends a request to one agent and returns its reply.

        Raises TimeoutError if none arrives within `wait_ms`, 5 minutes by default; `timeout_ms` is an alias.
        """
        message = self._message(destination, payload, options)
        timeout_ms = timeout_ms if wait_ms is None else wait_ms
        deadline = deadline_of(timeout_ms)
        while True:
            try:
                # A retry has the same message id: nothing is sent twice.
                wanted = {**message, "wait_reply": True, "timeout_ms": max(1, _wait_ms(deadline))}
                reply = (await self._client._call("agent_send", _until(deadline), **wanted)).get("reply")
                if reply is not None:
                    return Message(reply)
            except ProblemError as error:
                if error.code != "reply_timeout":
                    raise
            if time.monotonic() >= deadline:
                raise TimeoutError(f"{destination} has not replied within {timeout_ms:g} ms.")

    @blocking
    async def wait(
        self, *, wait_ms: float | None = None, timeout_ms: float = DEFAULT_WAIT_MS, **filter: Unpack[Filter]
    ) -> Message | None:
        """Waits for the next unread message. The messages returned before count as read.

        Returns None if none arrives within `wait_ms`, 5 minutes by default; `timeout_ms` is an alias. Each filter has a
        separate read position: messages read with one filter stay unread for the others. Concurrent waits are served
        in turn. A message that arrives at a cancelled wait stays unread.
        """
        timeout_ms = timeout_ms if wait_ms is None else wait_ms
        deadline = deadline_of(timeout_ms)
        async with self._turn.turn(max(0.0, deadline - time.monotonic())) as has:
            found = await self._next(deadline, filter) if has else None
            if found is None:
                return None
            # A redelivered message has an older seq than the read position.
            self._places[_key_of(filter)] = found["next_after"]
            return Message(found["items"][0])

    @iterating
    async def messages(self, **filter: Unpack[Filter]) -> AsyncGenerator[Message, None]:
        """Yields every message as it arrives."""
        while True:
            message = await aio(self.wait)(**filter)
            if message is not None:
                yield message

    @blocking
    async def reply(self, message: Message | str, payload: Any, **options: Unpack[CallOptions]) -> None:
        """Replies to a message, which also acknowledges it."""
        await self._client._call(
            "message_reply", options, room_id=self._room, message_id=_id_of(message), source=self.id, payload=payload
        )

    @blocking
    async def ack(self, message: Message | str, **options: Unpack[CallOptions]) -> None:
        """Acknowledges a message, so that it is not redelivered."""
        await self._client._call("message_ack", options, room_id=self._room, message_id=_id_of(message), agent_id=self.id)

    @blocking
    async def subscribe(self, topics: Sequence[str], **options: Unpack[CallOptions]) -> None:
        """Replaces its subscriptions. In a topic pattern `*` matches one word, and `>` at the end any number of words."""
        await self._client._call("agent_subscribe", options, room_id=self._room, agent_id=self.id, topics=names_of(topics, "Topics"))

    @blocking
    async def barrier(
        self,
        id: str,
        *,
        parties: int | None = None,
        participants: Sequence[str] | None = None,
        wait_ms: float | None = None,
        timeout_ms: float = DEFAULT_WAIT_MS,
    ) -> BarrierArriveResult:
        """Arrives at a barrier and waits until all have arrived.

        The call that opens the barrier gives the number of agents (`parties`), or their names (`participants`). Raises
        TimeoutError after `wait_ms`, 5 minutes by default; `timeout_ms` is an alias.
        """
        timeout_ms = timeout_ms if wait_ms is None else wait_ms
        deadline = deadline_of(timeout_ms)
        names = None if participants is None else list(participants)
        arrival: dict[str, Any] = given(parties=parties, participants=names)
        arrival.update(room_id=self._room, barrier_id=id, agent_id=self.id)
        # Learn the generation first, so that a release between two calls is not missed.
        standing = await self._client._call("barrier_arrive", _until(deadline), **arrival, timeout_ms=0)
        arrival["generation"] = standing["generation"]
        while standing["state"] != "released":
            try:
                standing = await self._client._call(
                    "barrier_arrive", _until(deadline), **arrival, timeout_ms=_wait_ms(deadline)
                )
            except ProblemError as error:
                if error.code != "barrier_timeout":
                    raise
            if standing["state"] != "released" and time.monotonic() >= deadline:
                raise TimeoutError(f"Not all agents have arrived at {id} within {timeout_ms:g} ms.")
        return BarrierArriveResult(standing)

    async def _next(self, deadline: float, filter: Filter) -> AgentWaitResult | None:
        """A page with the next message, which does not yet count as read: a cancelled wait loses none."""
        wanted = given(**filter)
        while True:
            input = given(after=self._places.get(_key_of(filter)), wait_ms=_wait_ms(deadline), **wanted)
            page = await self._client._call(
                "agent_wait", _until(deadline), room_id=self._room, agent_id=self.id, limit=1, **input
            )
            if page["items"]:
                return page
            if time.monotonic() >= deadline:
                return None

    def _message(self, destination: Destination, payload: Any, options: MessageOptions) -> dict[str, Any]:
        return {"room_id": self._room, **self._outgoing(destination, payload, **options)}

    def _outgoing(self, destination: Destination, payload: Any, **options: Unpack[MessageOptions]) -> Any:
        named: MessageOptions = {"message_id": f"sdk-{uuid.uuid4()}", **options}
        return {"source": self.id, **_destination(destination), "payload": payload, **named}


def _destination(destination: Destination) -> dict[str, Any]:
    if isinstance(destination, str):
        return {"destination": destination}
    if isinstance(destination, Mapping):
        return {"topic": destination["topic"]}
    return {"destinations": list(destination)}


def _wait_ms(deadline: float) -> int:
    return max(0, round(min(WAIT_MS, (deadline - time.monotonic()) * 1000)))


def _until(deadline: float) -> CallOptions:
    """Options of a call that waits on the service: its timeout exceeds the wait by `WAY_MS`."""
    return {"timeout_ms": max(0.0, deadline - time.monotonic()) * 1000 + WAY_MS}


def _key_of(filter: Filter) -> _Wanted:
    return tuple(sorted(given(**filter).items()))


def _id_of(message: Message | str) -> str:
    return message if isinstance(message, str) else message["message_id"]
