"""The same for asyncio: E2B's AsyncSandbox."""

import asyncio
import inspect
from collections.abc import Callable
from types import TracebackType
from typing import Any
from weakref import finalize

from ...client import AsyncioClient, Download, blocking_client
from ...coroutines import Wrapped, aio, aiter_of, called
from ...sandbox import Sandbox as NativeSandbox
from .commands import CommandHandle, Commands, OutputHandler
from .errors import CommandResult, SandboxException, translating
from .filesystem import Filesystem, change_of
from .listing import SandboxInfo, SandboxPaginator, SandboxQuery
from .sandbox import Sandbox


class _AsyncioSandbox(Sandbox):
    _makes = AsyncioClient


class _AsyncioPaginator(SandboxPaginator):
    _makes = AsyncioClient


class AsyncCommandHandle(Wrapped[CommandHandle]):
    """A command that was started in the background."""

    def __init__(self, plain: CommandHandle, out: OutputHandler | None, err: OutputHandler | None) -> None:
        """Starts to follow the command."""
        super().__init__(plain)
        self._is_disconnected = False
        self._done = asyncio.ensure_future(self._follow(out, err))
        # `wait` raises the error, if it is called.
        self._done.add_done_callback(lambda done: done.cancelled() or done.exception())

    @property
    def pid(self) -> int:
        """Process id in the guest."""
        return self._plain.pid

    @property
    def stdout(self) -> str:
        """Standard output so far."""
        return self._plain.stdout

    @property
    def stderr(self) -> str:
        """Standard error so far."""
        return self._plain.stderr

    async def wait(self) -> CommandResult:
        """Waits for its end. Raises CommandExitException and TimeoutException as `CommandHandle.wait` does."""
        await asyncio.wait([self._done])
        if self._is_disconnected and self._done.cancelled():
            raise SandboxException("The command was disconnected.")
        return self._done.result()

    async def disconnect(self) -> None:
        """Stops following it; it keeps running."""
        self._is_disconnected = True
        self._done.cancel()

    kill = called(CommandHandle.kill)
    send_stdin = called(CommandHandle.send_stdin)
    close_stdin = called(CommandHandle.close_stdin)

    async def _follow(self, *handlers: OutputHandler | None) -> CommandResult:
        while (texts := await self._plain._next()) is not None:
            for handler, text in zip(handlers, texts, strict=True):
                if handler is not None and text is not None:
                    await _call(handler, text)
        return await self._plain._result()


class AsyncCommands(Wrapped[Commands]):
    """Runs commands by `/bin/sh -c`."""

    list = called(Commands.list)
    kill = called(Commands.kill)
    send_stdin = called(Commands.send_stdin)
    close_stdin = called(Commands.close_stdin)

    async def run(
        self,
        cmd: str,
        background: bool | None = None,
        *,
        on_stdout: OutputHandler | None = None,
        on_stderr: OutputHandler | None = None,
        **options: Any,
    ) -> Any:
        """As `Commands.run`; handlers run in the event loop and may be coroutine functions."""
        made = AsyncCommandHandle(await self._plain._start(cmd, background, **options), on_stdout, on_stderr)
        return made if background else await made.wait()

    async def connect(
        self, pid: int, *, on_stdout: OutputHandler | None = None, on_stderr: OutputHandler | None = None, **options: Any
    ) -> AsyncCommandHandle:
        """Follows a running command from its first output that is kept."""
        return AsyncCommandHandle(await aio(self._plain.connect)(pid, **options), on_stdout, on_stderr)


class AsyncFilesystem(Wrapped[Filesystem]):
    """Reads, writes, lists and watches files."""

    write = called(Filesystem.write)
    write_files = called(Filesystem.write_files)
    list = called(Filesystem.list)
    exists = called(Filesystem.exists)
    get_info = called(Filesystem.get_info)
    remove = called(Filesystem.remove)
    rename = called(Filesystem.rename)
    make_dir = called(Filesystem.make_dir)

    async def read(
        self, path: str, format: str = "text", user: str | None = None, request_timeout: float | None = None
    ) -> Any:
        """The content of a file, as text by default; with "stream" an async iterator. Raises FileNotFoundException."""
        content = await self._plain._content(path, format, request_timeout)
        return aiter_of(content.__iter__)() if isinstance(content, Download) else content

    async def watch_dir(
        self,
        path: str,
        on_event: Callable[[Any], Any],
        recursive: bool = False,
        user: str | None = None,
        request_timeout: float | None = None,
    ) -> "AsyncWatchHandle":
        """Calls `on_event` for each change in a directory, until it is stopped."""
        watched = await self._plain._watched(path, recursive, request_timeout)
        handle = AsyncWatchHandle(self._plain, *watched, on_event)
        await handle._begin()
        return handle


class AsyncWatchHandle:
    """A watch that is active."""

    def __init__(
        self, plain: Filesystem, directory: str, input: dict[str, Any], on_event: Callable[[Any], Any]
    ) -> None:
        """Passes events on in the event loop."""
        self._is_ready = asyncio.Event()
        self._passing = asyncio.ensure_future(self._pass(plain, directory, input, on_event))
        self._passing.add_done_callback(lambda _: self._is_ready.set())

    async def stop(self) -> None:
        """Ends the watch."""
        self._passing.cancel()
        await asyncio.wait([self._passing])

    async def _begin(self) -> None:
        """Returns once changes are noticed."""
        try:
            await self._is_ready.wait()
        except BaseException:
            self._passing.cancel()
            raise
        if self._passing.done():
            with translating():
                self._passing.result()

    async def _pass(
        self, plain: Filesystem, directory: str, input: dict[str, Any], on_event: Callable[[Any], Any]
    ) -> None:
        async for event in aiter_of(plain._client.events)("sandbox_file_watch", None, **input):
            self._is_ready.set()
            change = change_of(event, directory)
            if change is not None:
                await _call(on_event, change)


class AsyncSandboxPaginator(Wrapped[SandboxPaginator]):
    """Pages of the organization's sandboxes."""

    @property
    def has_next(self) -> bool:
        """Whether there may be another page."""
        return self._plain.has_next

    next_items = called(SandboxPaginator.next_items)


class AsyncSandbox(Wrapped[Sandbox]):
    """A sandbox. The end of an `async with` block kills it."""

    _native: NativeSandbox | None = None

    @property
    def sandbox_id(self) -> str:
        """Its id, for `AsyncSandbox.connect`."""
        return self._plain.sandbox_id

    @property
    def native(self) -> NativeSandbox:
        """The same sandbox, not for asyncio, with roomd's complete interface."""
        if self._native is None:
            client = blocking_client(self._plain.native._client)
            finalize(self, client.close)
            self._native = self._plain.native._on(client)
        return self._native

    @property
    def files(self) -> AsyncFilesystem:
        """Its files."""
        return AsyncFilesystem(self._plain.files)

    @property
    def commands(self) -> AsyncCommands:
        """Its commands."""
        return AsyncCommands(self._plain.commands)

    @classmethod
    async def create(cls, template: str | None = None, timeout: float | None = None, **options: Any) -> "AsyncSandbox":
        """As `Sandbox.create`."""
        return cls(await aio(_AsyncioSandbox.create)(template, timeout, **options))

    @classmethod
    async def connect(cls, sandbox_id: str, timeout: float | None = None, **options: Any) -> "AsyncSandbox":
        """As `Sandbox.connect`."""
        return cls(await aio(_AsyncioSandbox._connected)(sandbox_id, timeout, **options))

    @classmethod
    def list(
        cls, query: SandboxQuery | None = None, limit: int | None = None, **options: Any
    ) -> AsyncSandboxPaginator:
        """As `Sandbox.list`."""
        return AsyncSandboxPaginator(_AsyncioPaginator(query, limit, **options))

    async def is_running(self) -> bool:
        """Whether it runs."""
        return await aio(self._plain.is_running)()

    async def set_timeout(self, timeout: float) -> None:
        """Sets its end, `timeout` seconds from now."""
        await aio(self._plain.set_timeout)(timeout)

    async def get_info(self) -> SandboxInfo:
        """Describes it."""
        return await aio(self._plain.get_info)()

    async def pause(self) -> bool:
        """Saves it to disk with its memory. `connect` resumes it, as does the next use."""
        return await aio(self._plain.pause)()

    async def kill(self) -> bool:
        """Ends it. False if it has ended."""
        return await aio(self._plain.kill)()

    async def expose_port(self, port: int, *, wait: bool = False) -> str:
        """Exposes a port publicly, and returns its URL."""
        return await aio(self._plain.expose_port)(port, wait=wait)

    def get_host(self, port: int) -> str:
        """Host, and path if there is one, of the URL of a port; call `await expose_port(port)` before."""
        return self._plain.get_host(port)

    async def __aenter__(self) -> "AsyncSandbox":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        try:
            await aio(self._plain.kill)()
        finally:
            self._plain._close()


async def _call(handler: Callable[[Any], Any], value: Any) -> None:
    """Calls a handler, which may be a coroutine function."""
    done = handler(value)
    if inspect.isawaitable(done):
        await done
