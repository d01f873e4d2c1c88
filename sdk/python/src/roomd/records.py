"""Records that the service returns: messages, ports, snapshots, checkpoints, and problems of forks.

Their fields have the names that the HTTP interface uses. Times are RFC 3339 text in UTC.
"""

from typing import Any, Literal

from .record import Record

MessageState = Literal["queued", "delivered", "read", "acked", "undeliverable", "expired"]
"""State of a message at a recipient."""


class Message(Record):
    """A message of a room, as its recipient receives it."""

    __slots__ = ()
    _shown = ("source", "kind", "payload", "message_id")

    message_id: str
    """Its id, unique in the room."""
    seq: int
    """Its position in the order of the room."""
    source: str
    """The agent that sent it, or "operator"."""
    destination: str | None
    """The agent that it was sent to, or "*"; None if it was sent to several or to a topic."""
    destinations: list[str] | None
    """The agents that it was sent to, if several were named."""
    topic: str | None
    """The topic that it was published to."""
    kind: Literal["event", "request", "response"]
    """A request expects a reply; a response is one."""
    payload: Any
    """The JSON content; None if the content is bytes."""
    payload_b64: str | None
    """The content in base64, if it is bytes."""
    size_bytes: int
    """Size of the content."""
    headers: dict[str, str]
    """Metadata in addition to the content."""
    reply_to: str | None
    """Id of the request that it replies to."""
    ack_required: bool
    """Whether it is redelivered until it is acknowledged."""
    created_at: str
    """Time of sending."""
    expires_at: str | None
    """Time after which it is no longer delivered."""
    attempt: int | None
    """Number of its deliveries to this recipient, this one included."""


class Delivery(Record):
    """State of a message at one recipient."""

    __slots__ = ()
    _shown = ("agent_id", "state")

    agent_id: str
    """The recipient."""
    state: MessageState
    """State of the message there."""


class MessageReceipt(Record):
    """Receipt of a message that was sent."""

    __slots__ = ()
    _shown = ("message_id", "state", "recipient_count")
    _parts = {"deliveries": Delivery}

    message_id: str
    """Id of the message, unique in the room."""
    seq: int
    """Its position in the order of the room."""
    state: MessageState
    """The least advanced state among the recipients."""
    deliveries: list[Delivery]
    """State at each recipient."""
    recipient_count: int
    """Number of recipients."""


class SentMessage(MessageReceipt):
    """Receipt of a message that was sent by `send`."""

    __slots__ = ()
    _parts = {"deliveries": Delivery, "reply": Message}

    reply: Message | None
    """The reply to a request; absent unless one was waited for."""


class BarrierArriveResult(Record):
    """State of a barrier after an arrival."""

    __slots__ = ()
    _shown = ("barrier_id", "state", "generation", "parties")

    barrier_id: str
    """Name of the barrier in the room."""
    generation: int
    """1 for the first release; each release is followed by the next generation."""
    state: Literal["waiting", "released", "broken", "cancelled"]
    """State of this generation."""
    parties: int
    """Number of agents that must arrive."""
    arrived: list[str]
    """Agents that have arrived."""
    missing: list[str]
    """Named participants that have not."""
    waited_ms: int
    """Time that the last call waited."""
    released_at: str | None
    """Time of the release."""


class PortTraffic(Record):
    """Traffic of an exposed port."""

    __slots__ = ()
    _shown = ("connections", "open_connections", "sent_bytes", "received_bytes")

    connections: int
    """Number of connections to the server; an HTTP request counts as one."""
    open_connections: int
    """Number of those that are open."""
    sent_bytes: int
    """Bytes that the server sent."""
    received_bytes: int
    """Bytes that it received."""
    since: str
    """Start of the count."""


class ExposedPort(Record):
    """A port of a sandbox that is reachable by URL. Its `repr` leaves out the token."""

    __slots__ = ()
    _shown = ("port", "url", "visibility", "listening")
    _parts = {"traffic": PortTraffic}

    port: int
    """The port on which the server in the sandbox listens."""
    visibility: Literal["private", "public"]
    """A private port needs its token."""
    url: str
    """`https://{label}.{ports.domain}` if the operator has set a domain, else `path_url`."""
    path_url: str
    """URL below the service's own, which works without a domain; browsers restrict its pages."""
    created_at: str
    """Time of the exposure."""
    expires_at: str | None
    """Time of its end; None: with the sandbox."""
    traffic: PortTraffic
    """Connections and bytes so far."""
    token: str | None
    """Opens this port only: header X-Port-Token, or `port_token` in the query. None for a public port."""
    listening: bool
    """Whether a server listened on the port at the time of the call."""


class Snapshot(Record):
    """A saved state of a sandbox."""

    __slots__ = ()
    _shown = ("snapshot_id", "agent_id", "name", "mode", "size_bytes")

    snapshot_id: str
    """Its id, for `rollback` and as `snapshot` of a new sandbox."""
    room_id: str
    """Name of the room."""
    agent_id: str
    """Name of the sandbox's agent."""
    sandbox_id: str
    """The sandbox that it was taken of."""
    name: str | None
    """A name of your choice."""
    parent: str | None
    """The previous snapshot of the sandbox, or the one it was created from."""
    mode: Literal["full", "disk"]
    """full: memory, processes and disk; disk: the disk only, from which sandboxes boot."""
    memory_mib: int
    """Memory of the sandbox in MiB."""
    vcpu_count: int
    """Number of its virtual CPUs."""
    template_id: str
    """Template of the sandbox."""
    size_bytes: int
    """Disk space that it needs in addition to its parent."""
    paused_ms: int
    """Time that the sandbox was paused to take it."""
    digest: str
    """Digest of its content."""
    checkpoint_id: str | None
    """The checkpoint that it is part of, and is deleted with."""
    created_at: str
    """Time at which it was taken."""
    expires_at: str | None
    """Time at which it is deleted."""


class CheckpointSnapshot(Record):
    """The snapshot of one sandbox in a checkpoint."""

    __slots__ = ()
    _shown = ("agent_id", "snapshot_id")

    agent_id: str
    """Name of the sandbox's agent."""
    snapshot_id: str
    """Id of its snapshot."""


class Checkpoint(Record):
    """A saved state of a whole room."""

    __slots__ = ()
    _shown = ("checkpoint_id", "room_id", "name", "size_bytes")
    _parts = {"snapshots": CheckpointSnapshot}

    checkpoint_id: str
    """Its id, for `fork` and `restore` of the room."""
    room_id: str
    """Name of the room."""
    name: str | None
    """A name of your choice."""
    snapshots: list[CheckpointSnapshot]
    """One for each sandbox; they are deleted with the checkpoint."""
    drive_bytes: int
    """Size of the files on the drive."""
    size_bytes: int
    """Disk space of all of it: drive, snapshots, and records of the database."""
    paused_ms: int
    """The longest pause of a sandbox to take it."""
    created_at: str
    """Time at which it was taken."""
    expires_at: str | None
    """Time at which it is deleted."""


class ForkProblem(Record):
    """Reason why one forked sandbox could not be created."""

    __slots__ = ()
    _shown = ("agent_id", "code", "detail")

    agent_id: str
    """The agent that the forked sandbox was for."""
    code: str
    """Code of the error."""
    title: str
    """Short description of the code."""
    detail: str
    """Description of this failure."""
