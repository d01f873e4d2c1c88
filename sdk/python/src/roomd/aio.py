"""The SDK for asyncio: the same classes, with methods to await. Their connections are asyncio streams.

Cancelling a task ends its wait and closes its connection. The service completes calls that it has started.
"""

import builtins
from collections.abc import AsyncGenerator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack
from weakref import WeakValueDictionary

from ._generated.schemas import Sandbox as SandboxRecord
from .agent import Agent
from .client import AsyncioClient, Client, Download
from .coroutines import Wrapped, aio, called, iterated
from .drive import Drive
from .errors import ForkError
from .execution import Command, CommandOptions, Execution
from .files import Files
from .room import Room
from .sandbox import ROOM_SECONDS, Sandbox, SandboxOptions
from .service import Rooms, Templates
from .spellings import strict
from .terminal import AttachedTerminal, Terminal
from .trace import UsualTrace
from .transport import CallOptions

if TYPE_CHECKING:
    from ._generated.calls import AsyncCall


class AsyncClient(Wrapped[Client]):
    """All operations of the HTTP interface, by name."""

    if TYPE_CHECKING:
        call: AsyncCall
    else:
        call = called(Client.call)
    upload = called(Client.upload)
    read = called(Client.read)
    events = iterated(Client.events)
    items = iterated(Client.items)

    async def download(self, name: str, options: CallOptions | None = None, /, **input: Any) -> "AsyncDownload":
        """Streams a file."""
        return AsyncDownload(await aio(self._plain.download)(name, options, **input))


class AsyncDownload(Wrapped[Download]):
    """A file while it is downloaded. Read it once to its end, or close it."""

    read = called(Download.read)
    text = called(Download.text)
    __aiter__ = iterated(Download.__iter__)

    @property
    def size(self) -> int | None:
        """Number of bytes that follow; None if it is unknown."""
        return self._plain.size

    @property
    def etag(self) -> str | None:
        """ETag of the file."""
        return self._plain.etag

    def close(self) -> None:
        """Closes its connection."""
        self._plain.close()

    async def __aenter__(self) -> "AsyncDownload":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()


class AsyncDrive(Wrapped[Drive]):
    """The drive of a room: one directory that all its sandboxes mount at /mnt/drive."""

    write = called(Drive.write)
    upload = called(Drive.upload)
    append = called(Drive.append)
    read = called(Drive.read)
    read_text = called(Drive.read_text)
    download = called(Drive.download)
    stat = called(Drive.stat)
    list = iterated(Drive.list)
    mkdir = called(Drive.mkdir)
    move = called(Drive.move)
    delete = called(Drive.delete)

    async def open(
        self, path: str, *, offset: int = 0, length: int | None = None, **options: Unpack[CallOptions]
    ) -> AsyncDownload:
        """Streams a file, or `length` bytes of it from `offset`."""
        plain = await aio(self._plain.open)(path, offset=offset, length=length, **options)
        return AsyncDownload(plain)


class AsyncAgent(Wrapped[Agent]):
    """An agent of a room. It needs no sandbox."""

    @classmethod
    def of(cls, plain: Agent) -> "AsyncAgent":
        """The agent of a plain one: the same object while it is referenced."""
        made = _AGENTS.get(plain)
        if made is None:
            made = _AGENTS[plain] = cls(plain)
        return made

    @property
    def id(self) -> str:
        """Name of the agent, unique in the room."""
        return self._plain.id

    send = called(Agent.send)
    send_many = called(Agent.send_many)
    request = called(Agent.request)
    reply = called(Agent.reply)
    ack = called(Agent.ack)
    subscribe = called(Agent.subscribe)
    barrier = called(Agent.barrier)
    wait = called(Agent.wait)
    messages = iterated(Agent.messages)


class AsyncExecution(Wrapped[Execution]):
    """A command that was started."""

    @property
    def id(self) -> str:
        """Name of the run (`exec_id`)."""
        return self._plain.id

    get = called(Execution.get)
    output = iterated(Execution.output)
    write = called(Execution.write)
    end = called(Execution.end)
    signal = called(Execution.signal)
    kill = called(Execution.kill)
    wait = called(Execution.wait)


@strict
class AsyncFiles(Wrapped[Files]):
    """Files of a sandbox. Paths are absolute."""

    read = called(Files.read)
    read_text = called(Files.read_text)
    write = called(Files.write)
    write_many = called(Files.write_many)
    upload = called(Files.upload)
    upload_dir = called(Files.upload_dir)
    download_dir = called(Files.download_dir)
    list = iterated(Files.list)
    stat = called(Files.stat)
    exists = called(Files.exists)
    mkdir = called(Files.mkdir)
    move = called(Files.move)
    remove = called(Files.remove)
    delete = called(Files.delete)
    watch = iterated(Files.watch)

    async def open(
        self, path: str, *, offset: int = 0, length: int | None = None, **options: Unpack[CallOptions]
    ) -> AsyncDownload:
        """Streams a file, or `length` bytes of it from `offset`. Raises NotFoundError."""
        download = await aio(self._plain.open)(path, offset=offset, length=length, **options)
        return AsyncDownload(download)


class AsyncAttachedTerminal(Wrapped[AttachedTerminal]):
    """A terminal that this program is attached to."""

    write = called(AttachedTerminal.write)
    resize = called(AttachedTerminal.resize)
    output = iterated(AttachedTerminal.output)

    def close(self) -> None:
        """Detaches from it; it keeps running."""
        self._plain.close()

    async def __aenter__(self) -> "AsyncAttachedTerminal":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()


class AsyncTerminal(Wrapped[Terminal]):
    """A terminal of a sandbox."""

    @property
    def id(self) -> str:
        """Its id."""
        return self._plain.id

    get = called(Terminal.get)
    watch = iterated(Terminal.watch)
    token = called(Terminal.token)
    end = called(Terminal.end)

    async def attach(self, *, takeover: bool = False, **options: Unpack[CallOptions]) -> AsyncAttachedTerminal:
        """Attaches to it, for typing. With `takeover` it replaces an attached client; otherwise it fails if there is one."""
        plain = await aio(self._plain.attach)(takeover=takeover, **options)
        return AsyncAttachedTerminal(plain)


@strict
class AsyncSandbox(Wrapped[Sandbox]):
    """A sandbox: a virtual machine that serves one agent of a room."""

    @classmethod
    async def create(
        cls,
        *,
        url: str | None = None,
        api_key: str | None = None,
        ca: str | None = None,
        keep: bool = False,
        ttl_seconds: int | None = ROOM_SECONDS,
        **options: Unpack[SandboxOptions],
    ) -> "AsyncSandbox":
        """Creates a sandbox in a dedicated room, which ends with it; see `Sandbox.create`."""
        return cls(await Sandbox._create_with(AsyncioClient(url, api_key, ca), options, keep, ttl_seconds))

    @classmethod
    async def connect(
        cls, id: str, *, url: str | None = None, api_key: str | None = None, ca: str | None = None, keep: bool = False
    ) -> "AsyncSandbox":
        """A sandbox that exists, by its `sandbox_id` or "ROOM/AGENT"; see `Sandbox.connect`."""
        return cls(await Sandbox._connect_with(AsyncioClient(url, api_key, ca), id, keep))

    @classmethod
    def list(
        cls,
        *,
        label: tuple[str, str] | None = None,
        state: str | None = None,
        room_id: str | None = None,
        url: str | None = None,
        api_key: str | None = None,
        ca: str | None = None,
    ) -> AsyncGenerator[SandboxRecord, None]:
        """Records of the organization's sandboxes, over all rooms."""
        return Sandbox._list_with(AsyncioClient(url, api_key, ca), label, state, room_id)

    @property
    def room_id(self) -> str:
        """Name of its room."""
        return self._plain.room_id

    @property
    def agent_id(self) -> str:
        """Name of its agent."""
        return self._plain.agent_id

    @property
    def sandbox_id(self) -> str:
        """Its id, for `AsyncSandbox.connect`."""
        return self._plain.sandbox_id

    @property
    def state(self) -> str:
        """Its state as of the last record that this object received."""
        return self._plain.state

    @property
    def agent(self) -> AsyncAgent:
        """Messages and barriers of its agent."""
        return AsyncAgent.of(self._plain.agent)

    @property
    def files(self) -> AsyncFiles:
        """Files of its disk."""
        return AsyncFiles(self._plain.files)

    get = called(Sandbox.get)
    expose_port = called(Sandbox.expose_port)
    snapshot = called(Sandbox.snapshot)
    is_running = called(Sandbox.is_running)
    update = called(Sandbox.update)
    set_timeout = called(Sandbox.set_timeout)
    set_egress = called(Sandbox.set_egress)
    metrics = called(Sandbox.metrics)
    logs = called(Sandbox.logs)
    exists = called(Sandbox.exists)
    wait_for_port = called(Sandbox.wait_for_port)
    rollback = called(Sandbox.rollback)
    standby = called(Sandbox.standby)
    hibernate = called(Sandbox.hibernate)
    resume = called(Sandbox.resume)
    exec = called(Sandbox.exec)
    destroy = called(Sandbox.destroy)

    async def fork(self, agents: Sequence[str], **options: Unpack[CallOptions]) -> "builtins.list[AsyncSandbox]":
        """Makes running copies of it in its room. Raises ForkError, with the copies made, if any failed."""
        try:
            made = await aio(self._plain.fork)(agents, **options)
        except ForkError as error:
            raise ForkError([AsyncSandbox(each) for each in error.sandboxes], error.problems) from None
        return [AsyncSandbox(each) for each in made]

    async def start(self, command: Command, **options: Unpack[CommandOptions]) -> AsyncExecution:
        """Starts a command and leaves it running, without a time limit by default."""
        return AsyncExecution(await aio(self._plain.start)(command, **options))

    def execution(self, id: str) -> AsyncExecution:
        """A command that was started before, by its `exec_id`."""
        return AsyncExecution(self._plain.execution(id))

    async def open_terminal(self, *, rows: int = 24, cols: int = 80, **wanted: Any) -> AsyncTerminal:
        """Opens a terminal, a login shell by default. `wanted` has the other fields of `schemas.TerminalCreateRequest`."""
        plain = await aio(self._plain.open_terminal)(rows=rows, cols=cols, **wanted)
        return AsyncTerminal(plain)

    def terminal(self, id: str) -> AsyncTerminal:
        """A terminal that exists, by its id."""
        return AsyncTerminal(self._plain.terminal(id))

    async def __aenter__(self) -> "AsyncSandbox":
        return self

    __aexit__ = called(Sandbox.__exit__)


class AsyncRoom(Wrapped[Room]):
    """A room: the sandboxes of a group of agents, their drive and their messages."""

    @property
    def id(self) -> str:
        """Name of the room."""
        return self._plain.id

    @property
    def drive(self) -> AsyncDrive:
        """Files that all sandboxes of the room share."""
        return AsyncDrive(self._plain.drive)

    get = called(Room.get)
    sandboxes = iterated(Room.sandboxes)
    agents = iterated(Room.agents)
    send = called(Room.send)
    send_many = called(Room.send_many)
    events = iterated(Room.events)
    checkpoint = called(Room.checkpoint)
    restore = called(Room.restore)
    destroy = called(Room.destroy)

    async def create_sandbox(self, agent_id: str, **options: Unpack[SandboxOptions]) -> AsyncSandbox:
        """Creates a sandbox for an agent, and waits until it runs commands."""
        return AsyncSandbox(await aio(self._plain.create_sandbox)(agent_id, **options))

    def sandbox(self, agent_id: str) -> AsyncSandbox:
        """A sandbox that exists, by its agent. No call is made."""
        return AsyncSandbox(self._plain.sandbox(agent_id))

    def agent(self, id: str) -> AsyncAgent:
        """An agent of the room, by its name; it needs no sandbox."""
        return AsyncAgent.of(self._plain.agent(id))

    async def fork(
        self, room_id: str, *, checkpoint_id: str | None = None, **options: Unpack[CallOptions]
    ) -> "AsyncRoom":
        """Creates another room from the current state, or from a checkpoint; its sandboxes continue there."""
        plain = await aio(self._plain.fork)(room_id, checkpoint_id=checkpoint_id, **options)
        return AsyncRoom(plain)

    async def __aenter__(self) -> "AsyncRoom":
        return self

    __aexit__ = called(Room.__exit__)


class AsyncRooms(Wrapped[Rooms]):
    """Rooms of the organization."""

    list = iterated(Rooms.list)

    async def create(
        self,
        room_id: str | None = None,
        *,
        labels: Mapping[str, str] | None = None,
        ttl_seconds: int | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncRoom:
        """Creates a room, with a generated name by default; it is destroyed after `ttl_seconds`."""
        plain = await aio(self._plain.create)(room_id, labels=labels, ttl_seconds=ttl_seconds, **options)
        return AsyncRoom(plain)

    def open(self, room_id: str) -> AsyncRoom:
        """A room that exists. It is not destroyed at the end of an `async with` block."""
        return AsyncRoom(self._plain.open(room_id))


class AsyncTemplates(Wrapped[Templates]):
    """Templates that sandboxes start from."""

    get = called(Templates.get)
    list = iterated(Templates.list)
    remove = called(Templates.remove)
    build = called(Templates.build)


class AsyncRoomd:
    """A roomd service, for asyncio."""

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        ca: str | None = None,
        traceparent: UsualTrace | None = None,
    ) -> None:
        """Connects to a service. Options that are absent come from the environment: see `Client`."""
        self._client = AsyncioClient(url, api_key, ca, traceparent)
        self.client = AsyncClient(self._client)
        """All operations of the HTTP interface, by name."""
        self.rooms = AsyncRooms(Rooms(self._client))
        """Rooms of the organization."""
        self.templates = AsyncTemplates(Templates(self._client))
        """Templates that sandboxes start from."""

    def close(self) -> None:
        """Cancels pending calls, and closes the connections."""
        self._client.close()

    async def __aenter__(self) -> "AsyncRoomd":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()


_AGENTS: WeakValueDictionary[Agent, AsyncAgent] = WeakValueDictionary()
