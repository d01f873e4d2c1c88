"""Owns what one agent of a room says and hears: messages, requests and barriers, also from outside of a sandbox."""

import math
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypedDict, Unpack

from ._generated.schemas import BarrierArriveResult, Message, SentMessage
from .client import Client, given
from .errors import ProblemError, TimeoutError
from .transport import CallOptions

WAIT_MS = 50_000
"""The longest that one call waits; longer waits are several calls."""
DEFAULT_WAIT_MS = 300_000

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
        # Up to where the inbox was read.
        self._after: int | None = None

    def send(self, destination: Destination, payload: Any, **options: Unpack[MessageOptions]) -> SentMessage:
        """Sends a message. Once this has returned it is on disk, and is never dropped."""
        return self._client.call("agent_send", None, **self._message(destination, payload, options))

    def request(
        self,
        destination: str,
        payload: Any,
        *,
        timeout_ms: int = DEFAULT_WAIT_MS,
        **options: Unpack[MessageOptions],
    ) -> Message:
        """Sends a request to one agent and waits for its reply. Raises a TimeoutError without one."""
        message = self._message(destination, payload, options)
        calls = max(1, math.ceil(timeout_ms / WAIT_MS))
        for _ in range(calls):
            try:
                # The same message again: nothing is sent twice.
                wanted = {**message, "wait_reply": True, "timeout_ms": max(1, math.ceil(timeout_ms / calls))}
                reply = self._client.call("agent_send", None, **wanted).get("reply")
                if reply is not None:
                    return reply
            except ProblemError as error:
                if error.code != "reply_timeout":
                    raise
        raise TimeoutError(f"{destination} has not replied within {timeout_ms} ms.")

    def wait(self, *, timeout_ms: int = DEFAULT_WAIT_MS, **filter: Unpack[Filter]) -> Message | None:
        """The next message that this agent has not read; what was returned before is read then.

        None when none comes in time.
        """
        message = self.next(timeout_ms, filter)
        if message is not None:
            self.took(message)
        return message

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
        timeout_ms: int = DEFAULT_WAIT_MS,
    ) -> BarrierArriveResult:
        """Arrives at a barrier, and waits until all have. Raises a TimeoutError when they have not in time.

        Whoever opens the barrier says how many must arrive, or who.
        """
        deadline = time.monotonic() + timeout_ms / 1000
        names = None if participants is None else list(participants)
        arrival: dict[str, Any] = given(parties=parties, participants=names)
        arrival.update(room_id=self._room, barrier_id=id, agent_id=self.id)
        # Which generation this is, so that its release is not missed between two calls.
        standing = self._client.call("barrier_arrive", None, **arrival, timeout_ms=0)
        arrival["generation"] = standing["generation"]
        while standing["state"] != "released":
            try:
                standing = self._client.call("barrier_arrive", None, **arrival, timeout_ms=_wait_ms(deadline))
            except ProblemError as error:
                if error.code != "barrier_timeout":
                    raise
            if standing["state"] != "released" and time.monotonic() >= deadline:
                raise TimeoutError(f"Not all have come to {id} within {timeout_ms} ms.")
        return standing

    def next(self, timeout_ms: int, filter: Filter) -> Message | None:
        """As `wait`, but the message is read only when it `took` it: whoever waits may leave in between."""
        deadline = time.monotonic() + timeout_ms / 1000
        while True:
            input = given(after=self._after, wait_ms=_wait_ms(deadline), **filter)
            page = self._client.call("agent_wait", None, room_id=self._room, agent_id=self.id, limit=1, **input)
            for message in page["items"]:
                return message
            if time.monotonic() >= deadline:
                return None

    def took(self, message: Message) -> None:
        self._after = message["seq"]

    def _message(self, destination: Destination, payload: Any, options: MessageOptions) -> dict[str, Any]:
        message = {"message_id": f"sdk-{uuid.uuid4()}", **options}
        return {"room_id": self._room, "source": self.id, **_destination(destination), "payload": payload, **message}


def _destination(destination: Destination) -> dict[str, Any]:
    if isinstance(destination, str):
        return {"destination": destination}
    if isinstance(destination, Mapping):
        return {"topic": destination["topic"]}
    return {"destinations": list(destination)}


def _wait_ms(deadline: float) -> int:
    return max(0, min(WAIT_MS, round((deadline - time.monotonic()) * 1000)))


def _id_of(message: Message | str) -> str:
    return message if isinstance(message, str) else message["message_id"]
