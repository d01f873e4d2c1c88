"""The SDK for asyncio: the same classes, with methods to await, each of which runs in a thread.

Cancelling a task ends its wait immediately. The service completes calls that it has started.
"""

import asyncio
import builtins
from collections.abc import AsyncGenerator, Coroutine, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, Unpack
from weakref import WeakValueDictionary

from ._generated.schemas import TemplateBuild
from ._generated.schemas import Sandbox as SandboxRecord
from .agent import DEFAULT_WAIT_MS, Agent, Filter
from .client import Client, Download
from .drive import Drive
from .errors import ForkError
from .execution import Command, CommandOptions, CommandResult, Execution, OutputHeard
from .files import Files
from .records import Message
from .room import Room
from .sandbox import Sandbox, SandboxOptions
from .service import Rooms, Roomd, Templates
from .spellings import strict
from .terminal import AttachedTerminal, Terminal
from .threads import Threads, Wrapped, called, iterated
from .trace import UsualTrace
from .transport import MAX_SECONDS, CallOptions, deadline_of

if TYPE_CHECKING:
    from ._generated.calls import AsyncCall

T = TypeVar("T")


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
        return AsyncDownload(self._threads, await self._threads.run(self._plain.download, name, options, **input))


class AsyncDownload(Wrapped[Download]):
    """A file while it is downloaded. Read it once to its end, or close it."""

    read = called(Download.read)
    text = called(Download.text)

    @property
    def size(self) -> int | None:
        """Number of bytes that follow; None if it is unknown."""
        return self._plain.size

    @property
    def etag(self) -> str | None:
        """ETag of the file."""
        return self._plain.etag

    def __aiter__(self) -> AsyncGenerator[bytes, None]:
        """Yields the bytes as they arrive."""
        return self._threads.iterate(self._plain.__iter__)

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
        plain = await self._threads.run(self._plain.open, path, offset=offset, length=length, **options)
        return AsyncDownload(self._threads, plain)


class AsyncAgent(Wrapped[Agent]):
    """An agent of a room. It needs no sandbox."""

    def __init__(self, threads: Threads, plain: Agent) -> None:
        """An agent with its calls in these threads."""
        super().__init__(threads, plain)
        # Concurrent waits would get the same message.
        self._turn = asyncio.Lock()

    @classmethod
    def of(cls, threads: Threads, plain: Agent) -> "AsyncAgent":
        """The agent of a plain one: the same object while it is referenced."""
        made = _AGENTS.get(plain)
        if made is None or made._threads is not threads:
            made = _AGENTS[plain] = cls(threads, plain)
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

    async def wait(
        self, *, wait_ms: float | None = None, timeout_ms: float = DEFAULT_WAIT_MS, **filter: Unpack[Filter]
    ) -> Message | None:
        """Waits for the next unread message; see `Agent.wait`. A message that arrives at a cancelled wait stays unread."""
        timeout_ms = timeout_ms if wait_ms is None else wait_ms
        deadline = deadline_of(timeout_ms)
        try:
            async with asyncio.timeout(max(0.0, min(MAX_SECONDS, timeout_ms / 1000))):
                await self._turn.acquire()
        except TimeoutError:
            return None
        try:
            found = await self._threads.run(self._plain.next, deadline, filter)
            if found is None:
                return None
            self._plain.took(found, filter)
            return Message(found["items"][0])
        finally:
            self._turn.release()

    async def messages(self, **filter: Unpack[Filter]) -> AsyncGenerator[Message, None]:
        """Yields every message as it arrives."""
        while True:
            message = await self.wait(**filter)
            if message is not None:
                yield message


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

    async def wait(
        self,
        *,
        on_stdout: OutputHeard | None = None,
        on_stderr: OutputHeard | None = None,
        kill_on_cancel: bool = False,
        max_output_bytes: int | None = None,
        timeout_ms: float | None = None,
    ) -> CommandResult:
        """Waits for its end. A command that fails is no error: see `exit_code`.

        With `kill_on_cancel` a cancelled task ends the command as well as the wait. With `timeout_ms` it raises
        TimeoutError after this time, and the command continues.
        """
        ears = _Ears()
        return await ears.hearing(
            self._threads.run(
                self._plain.wait,
                on_stdout=ears.of(on_stdout),
                on_stderr=ears.of(on_stderr),
                kill_on_cancel=kill_on_cancel,
                max_output_bytes=max_output_bytes,
                timeout_ms=timeout_ms,
            )
        )


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
        download = await self._threads.run(self._plain.open, path, offset=offset, length=length, **options)
        return AsyncDownload(self._threads, download)


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
        plain = await self._threads.run(self._plain.attach, takeover=takeover, **options)
        return AsyncAttachedTerminal(self._threads, plain)


@strict
class AsyncSandbox(Wrapped[Sandbox]):
    """A sandbox: a virtual machine that serves one agent of a room."""

    _owns_threads = False
    _is_ended = False

    @classmethod
    async def create(
        cls,
        *,
        url: str | None = None,
        api_key: str | None = None,
        ca: str | None = None,
        **options: Unpack[SandboxOptions],
    ) -> "AsyncSandbox":
        """Creates a sandbox in a dedicated room, which ends with it; see `Sandbox.create`."""
        threads = Threads()
        try:
            plain = await threads.run(Sandbox.create, url=url, api_key=api_key, ca=ca, **options)
        except BaseException:
            threads.close()
            raise
        made = cls(threads, plain)
        made._owns_threads = True
        return made

    @classmethod
    async def connect(
        cls, id: str, *, url: str | None = None, api_key: str | None = None, ca: str | None = None, keep: bool = False
    ) -> "AsyncSandbox":
        """A sandbox that exists, by its `sandbox_id` or "ROOM/AGENT"; see `Sandbox.connect`."""
        threads = Threads()
        try:
            plain = await threads.run(Sandbox.connect, id, url=url, api_key=api_key, ca=ca, keep=keep)
        except BaseException:
            threads.close()
            raise
        made = cls(threads, plain)
        made._owns_threads = True
        return made

    @classmethod
    async def list(
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
        threads = Threads()
        try:
            plain = partial(
                Sandbox.list, label=label, state=state, room_id=room_id, url=url, api_key=api_key, ca=ca
            )
            async for each in threads.iterate(plain):
                yield each
        finally:
            threads.close()

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
        return AsyncAgent.of(self._threads, self._plain.agent)

    @property
    def files(self) -> AsyncFiles:
        """Files of its disk."""
        return AsyncFiles(self._threads, self._plain.files)

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

    async def exec(
        self,
        command: Command,
        *,
        on_stdout: OutputHeard | None = None,
        on_stderr: OutputHeard | None = None,
        kill_on_cancel: bool = False,
        **options: Unpack[CommandOptions],
    ) -> CommandResult:
        """Runs a command and waits for its end.

        `timeout_ms` ends the command, after 10 minutes by default; `wait_ms` ends only the waiting, with a
        TimeoutError. A command that fails is no error: see `exit_code`.
        """
        ears = _Ears()
        return await ears.hearing(
            self._threads.run(
                self._plain.exec,
                command,
                on_stdout=ears.of(on_stdout),
                on_stderr=ears.of(on_stderr),
                kill_on_cancel=kill_on_cancel,
                **options,
            )
        )

    async def fork(self, agents: Sequence[str], **options: Unpack[CallOptions]) -> "builtins.list[AsyncSandbox]":
        """Makes running copies of it in its room. Raises ForkError, with the copies made, if any failed."""
        try:
            made = await self._threads.run(self._plain.fork, agents, **options)
        except ForkError as error:
            raise ForkError([AsyncSandbox(self._threads, each) for each in error.sandboxes], error.problems) from None
        return [AsyncSandbox(self._threads, each) for each in made]

    async def start(self, command: Command, **options: Unpack[CommandOptions]) -> AsyncExecution:
        """Starts a command and leaves it running, without a time limit by default."""
        return AsyncExecution(self._threads, await self._threads.run(self._plain.start, command, **options))

    def execution(self, id: str) -> AsyncExecution:
        """A command that was started before, by its `exec_id`."""
        return AsyncExecution(self._threads, self._plain.execution(id))

    async def open_terminal(self, *, rows: int = 24, cols: int = 80, **wanted: Any) -> AsyncTerminal:
        """Opens a terminal, a login shell by default. `wanted` has the other fields of `schemas.TerminalCreateRequest`."""
        plain = await self._threads.run(self._plain.open_terminal, rows=rows, cols=cols, **wanted)
        return AsyncTerminal(self._threads, plain)

    def terminal(self, id: str) -> AsyncTerminal:
        """A terminal that exists, by its id."""
        return AsyncTerminal(self._threads, self._plain.terminal(id))

    async def destroy(self, **options: Unpack[CallOptions]) -> None:
        """Destroys it, and a dedicated room with its drive."""
        await self._threads.run(self._plain.destroy, **options)
        if self._owns_threads:
            self._is_ended = True
            self._threads.close()

    async def __aenter__(self) -> "AsyncSandbox":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        if self._is_ended:
            return
        try:
            await self._threads.run(self._plain.__exit__, kind, error, at)
        finally:
            if self._owns_threads:
                self._threads.close()


class AsyncRoom(Wrapped[Room]):
    """A room: the sandboxes of a group of agents, their drive and their messages."""

    @property
    def id(self) -> str:
        """Name of the room."""
        return self._plain.id

    @property
    def drive(self) -> AsyncDrive:
        """Files that all sandboxes of the room share."""
        return AsyncDrive(self._threads, self._plain.drive)

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
        return AsyncSandbox(self._threads, await self._threads.run(self._plain.create_sandbox, agent_id, **options))

    def sandbox(self, agent_id: str) -> AsyncSandbox:
        """A sandbox that exists, by its agent. No call is made."""
        return AsyncSandbox(self._threads, self._plain.sandbox(agent_id))

    def agent(self, id: str) -> AsyncAgent:
        """An agent of the room, by its name; it needs no sandbox."""
        return AsyncAgent.of(self._threads, self._plain.agent(id))

    async def fork(
        self, room_id: str, *, checkpoint_id: str | None = None, **options: Unpack[CallOptions]
    ) -> "AsyncRoom":
        """Creates another room from the current state, or from a checkpoint; its sandboxes continue there."""
        plain = await self._threads.run(self._plain.fork, room_id, checkpoint_id=checkpoint_id, **options)
        return AsyncRoom(self._threads, plain)

    async def __aenter__(self) -> "AsyncRoom":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._threads.run(self._plain.__exit__, kind, error, at)


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
        plain = await self._threads.run(
            self._plain.create, room_id, labels=labels, ttl_seconds=ttl_seconds, **options
        )
        return AsyncRoom(self._threads, plain)

    def open(self, room_id: str) -> AsyncRoom:
        """A room that exists. It is not destroyed at the end of an `async with` block."""
        return AsyncRoom(self._threads, self._plain.open(room_id))


class AsyncTemplates(Wrapped[Templates]):
    """Templates that sandboxes start from."""

    get = called(Templates.get)
    list = iterated(Templates.list)
    remove = called(Templates.remove)

    async def build(self, wanted: Mapping[str, Any], *, on_output: OutputHeard | None = None) -> TemplateBuild:
        """Builds a template from an image and waits until it is ready; see `Templates.build`."""
        ears = _Ears()
        return await ears.hearing(self._threads.run(self._plain.build, wanted, on_output=ears.of(on_output)))


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
        self._plain = Roomd(url, api_key, ca, traceparent)
        self._threads = Threads()
        self.client = AsyncClient(self._threads, self._plain.client)
        """All operations of the HTTP interface, by name."""
        self.rooms = AsyncRooms(self._threads, self._plain.rooms)
        """Rooms of the organization."""
        self.templates = AsyncTemplates(self._threads, self._plain.templates)
        """Templates that sandboxes start from."""

    def close(self) -> None:
        """Cancels pending calls, and closes the connections."""
        self._threads.close()
        self._plain.close()

    async def __aenter__(self) -> "AsyncRoomd":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()


class _Ears:
    """Runs callbacks of any thread in the current event loop; an exception of a callback ends the call."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._call: asyncio.Future[Any] | None = None
        self._raised: BaseException | None = None

    def of(self, heard: OutputHeard | None) -> OutputHeard | None:
        if heard is None:
            return None
        tell: OutputHeard = heard

        def here(text: str) -> None:
            if self._raised is not None:
                return
            try:
                tell(text)
            except Exception as error:
                self._raised = error
                if self._call is not None:
                    self._call.cancel()

        def told(text: str) -> None:
            self._loop.call_soon_threadsafe(here, text)

        return told

    async def hearing(self, call: Coroutine[Any, Any, T]) -> T:
        self._call = asyncio.ensure_future(call)
        try:
            done = await self._call
        except asyncio.CancelledError:
            if self._raised is None:
                raise
        if self._raised is not None:
            raise self._raised
        return done


_AGENTS: WeakValueDictionary[Agent, AsyncAgent] = WeakValueDictionary()
