"""Owns what one agent of a room says and hears: messages, requests and barriers, also from outside of a sandbox."""

import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, Required, TypedDict, Unpack

from ._generated.schemas import AgentWaitResult
from .cancel import current
from .client import Client, digest_of, given
from .errors import ProblemError, TimeoutError
from .records import BarrierArriveResult, Message, MessageReceipt, SentMessage
from .transport import CallOptions, deadline_of

WAIT_MS = 50_000
"""The longest that one call waits; longer waits are several calls."""
DEFAULT_WAIT_MS = 300_000
WAY_MS = 10_000
"""What an answer may need on its way, besides the waiting."""

_Wanted = tuple[tuple[str, Any], ...]

MessageKind = Literal["event", "request", "response"]


class Topic(TypedDict):
    topic: str


Destination = str | Sequence[str] | Topic
"""One agent, several of them, all others with "*", or the subscribers of a topic."""


class MessageOptions(TypedDict, total=False):
    kind: MessageKind
    """An event if absent."""
    message_id: str
    """The message's name in the room: the same one is sent once."""
    headers: Mapping[str, str]
    """Small facts beside the payload."""
    ack_required: bool
    """Whether it comes again until the receiver has acknowledged it."""
    ttl_ms: int
    """It expires unread after this time."""


class Outgoing(MessageOptions, total=False):
    """One of many that are sent together."""

    destination: Required[Destination]
    payload: Required[Any]


class Filter(TypedDict, total=False):
    """Which messages are waited for."""

    topic: str
    kind: MessageKind
    source: str


class Agent:
    def __init__(self, client: Client, room: str, id: str) -> None:
        self.id = id
        self._client = client
        self._room = room
        # Up to where the inbox was read, by what was waited for: one filter says nothing of what another leaves out.
        self._places: dict[_Wanted, int] = {}
        # Two who wait at once would get the same message.
        self._turn = threading.Lock()

    def send(self, destination: Destination, payload: Any, **options: Unpack[MessageOptions]) -> SentMessage:
        """Sends a message. Once this has returned it is on disk, and is never dropped."""
        return SentMessage(self._client.call("agent_send", None, **self._message(destination, payload, options)))

    def send_many(self, messages: Sequence[Outgoing], **options: Unpack[CallOptions]) -> list[MessageReceipt]:
        """Sends up to 256 messages in one call, as if one after another, all or none.

        Many at a time so cost the service a fraction of what each costs by itself. Once this has returned they are on
        disk.
        """
        if (key := options.get("idempotency_key")) is not None:
            # The same key is the same call also from another process: its messages have the same names.
            messages = [{"message_id": f"sdk-{digest_of(key)}-{index}", **each} for index, each in enumerate(messages)]
        wanted = [self._outgoing(**message) for message in messages]
        sent = self._client.call("message_send_many", options, room_id=self._room, messages=wanted)
        return [MessageReceipt(each) for each in sent["messages"]]

    def request(
        self,
        destination: str,
        payload: Any,
        *,
        wait_ms: float | None = None,
        timeout_ms: float = DEFAULT_WAIT_MS,
        **options: Unpack[MessageOptions],
    ) -> Message:
        """Sends a request to one agent and waits for its reply. Raises a TimeoutError without one."""
        message = self._message(destination, payload, options)
        timeout_ms = timeout_ms if wait_ms is None else wait_ms
        deadline = deadline_of(timeout_ms)
        while True:
            try:
                # The same message again: nothing is sent twice.
                wanted = {**message, "wait_reply": True, "timeout_ms": max(1, _wait_ms(deadline))}
                reply = self._client.call("agent_send", _until(deadline), **wanted).get("reply")
                if reply is not None:
                    return Message(reply)
            except ProblemError as error:
                if error.code != "reply_timeout":
                    raise
            if time.monotonic() >= deadline:
                raise TimeoutError(f"{destination} has not replied within {timeout_ms:g} ms.")

    def wait(
        self, *, wait_ms: float | None = None, timeout_ms: float = DEFAULT_WAIT_MS, **filter: Unpack[Filter]
    ) -> Message | None:
        """The next message that this agent has not read; what was returned before is read then.

        It waits `wait_ms`, of which `timeout_ms` is an alias; 5 minutes by default.

        None when none comes in time. Each filter goes through the inbox on its own: what was waited for with one is
        not read for the others. Who waits while another does comes after it.
        """
        timeout_ms = timeout_ms if wait_ms is None else wait_ms
        deadline = deadline_of(timeout_ms)
        with current().turn(self._turn, max(0.0, deadline - time.monotonic())) as has:
            found = self.next(deadline, filter) if has else None
            if found is None:
                return None
            self.took(found, filter)
            return Message(found["items"][0])

    def messages(self, **filter: Unpack[Filter]) -> Iterator[Message]:
        """Every message, as it comes."""
        while True:
            message = self.wait(**filter)
            if message is not None:
                yield message

    def reply(self, message: Message | str, payload: Any, **options: Unpack[CallOptions]) -> None:
        """Answers a message, which acknowledges it."""
        self._client.call(
            "message_reply", options, room_id=self._room, message_id=_id_of(message), source=self.id, payload=payload
        )

    def ack(self, message: Message | str, **options: Unpack[CallOptions]) -> None:
        self._client.call("message_ack", options, room_id=self._room, message_id=_id_of(message), agent_id=self.id)

    def subscribe(self, topics: Sequence[str], **options: Unpack[CallOptions]) -> None:
        """Replaces its topics. In a pattern * stands for one word, and > at the end for all that follow."""
        self._client.call("agent_subscribe", options, room_id=self._room, agent_id=self.id, topics=list(topics))

    def barrier(
        self,
        id: str,
        *,
        parties: int | None = None,
        participants: Sequence[str] | None = None,
        wait_ms: float | None = None,
        timeout_ms: float = DEFAULT_WAIT_MS,
    ) -> BarrierArriveResult:
        """Arrives at a barrier, and waits until all have. Raises a TimeoutError when they have not in time.

        Whoever opens the barrier says how many must arrive, or who.
        """
        timeout_ms = timeout_ms if wait_ms is None else wait_ms
        deadline = deadline_of(timeout_ms)
        names = None if participants is None else list(participants)
        arrival: dict[str, Any] = given(parties=parties, participants=names)
        arrival.update(room_id=self._room, barrier_id=id, agent_id=self.id)
        # Which generation this is, so that its release is not missed between two calls.
        standing = self._client.call("barrier_arrive", _until(deadline), **arrival, timeout_ms=0)
        arrival["generation"] = standing["generation"]
        while standing["state"] != "released":
            try:
                standing = self._client.call(
                    "barrier_arrive", _until(deadline), **arrival, timeout_ms=_wait_ms(deadline)
                )
            except ProblemError as error:
                if error.code != "barrier_timeout":
                    raise
            if standing["state"] != "released" and time.monotonic() >= deadline:
                raise TimeoutError(f"Not all have come to {id} within {timeout_ms:g} ms.")
        return BarrierArriveResult(standing)

    def next(self, deadline: float, filter: Filter) -> AgentWaitResult | None:
        """As `wait`, but the message is read only when it `took` it: whoever waits may leave in between."""
        wanted = given(**filter)
        while True:
            input = given(after=self._places.get(_key_of(filter)), wait_ms=_wait_ms(deadline), **wanted)
            page = self._client.call(
                "agent_wait", _until(deadline), room_id=self._room, agent_id=self.id, limit=1, **input
            )
            if page["items"]:
                return page
            if time.monotonic() >= deadline:
                return None

    def took(self, found: AgentWaitResult, filter: Filter) -> None:
        # A message that comes again has an older seq than the place.
        self._places[_key_of(filter)] = found["next_after"]

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
    """A call that waits on the service may take a little longer than the waiting."""
    return {"timeout_ms": max(0.0, deadline - time.monotonic()) * 1000 + WAY_MS}


def _key_of(filter: Filter) -> _Wanted:
    return tuple(sorted(given(**filter).items()))


def _id_of(message: Message | str) -> str:
    return message if isinstance(message, str) else message["message_id"]
