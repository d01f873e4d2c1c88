"""The same for asyncio: E2B's AsyncSandbox, whose calls run in threads."""

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable
from types import TracebackType
from typing import Any

from ...threads import Threads, Wrapped, called
from .commands import CommandHandle, Commands, OutputHandler
from .errors import CommandResult
from .filesystem import Filesystem, WatchHandle
from .listing import SandboxInfo, SandboxPaginator, SandboxQuery
from .sandbox import Sandbox


class AsyncCommandHandle(Wrapped[CommandHandle]):
    """A command that was started in the background."""

    def __init__(self, threads: Threads, plain: CommandHandle, out: OutputHandler | None, err: OutputHandler | None) -> None:
        """Starts to follow the command."""
        super().__init__(threads, plain)
        self._done = asyncio.ensure_future(threads.run(plain.wait, None, _in_loop(out), _in_loop(err)))
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
        return await asyncio.shield(self._done)

    async def disconnect(self) -> None:
        """Stops following it; it keeps running."""
        self._plain.disconnect()

    kill = called(CommandHandle.kill)
    send_stdin = called(CommandHandle.send_stdin)
    close_stdin = called(CommandHandle.close_stdin)


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
        start: Callable[..., CommandHandle] = self._plain.run
        handle = await self._threads.run(start, cmd, True, **{"stdin": False, **options})
        if not background and not options.get("stdin"):
            await self._threads.run(handle.close_stdin)
        made = AsyncCommandHandle(self._threads, handle, on_stdout, on_stderr)
        return made if background else await made.wait()

    async def connect(
        self, pid: int, *, on_stdout: OutputHandler | None = None, on_stderr: OutputHandler | None = None, **options: Any
    ) -> AsyncCommandHandle:
        """Follows a running command from its first output that is kept."""
        handle = await self._threads.run(self._plain.connect, pid, **options)
        return AsyncCommandHandle(self._threads, handle, on_stdout, on_stderr)


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

    async def read(self, path: str, format: str = "text", **options: Any) -> Any:
        """The content of a file, as text by default; with "stream" an async iterator. Raises FileNotFoundException."""
        read: Callable[..., Any] = self._plain.read
        content = await self._threads.run(read, path, format, **options)
        return self._parts(content) if format == "stream" else content

    async def watch_dir(
        self, path: str, on_event: Callable[[Any], Any], recursive: bool = False, **options: Any
    ) -> "AsyncWatchHandle":
        """Calls `on_event` for each change in a directory, until it is stopped."""
        handle = await self._threads.run(self._plain.watch_dir, path, recursive=recursive, **options)
        return AsyncWatchHandle(self._threads, handle, on_event)

    def _parts(self, content: Any) -> AsyncGenerator[bytes, None]:
        return self._threads.iterate(lambda: content)


LOOK_SECONDS = 0.1
"""Interval at which events are passed on."""


class AsyncWatchHandle(Wrapped[WatchHandle]):
    """A watch that is active."""

    def __init__(self, threads: Threads, plain: WatchHandle, on_event: Callable[[Any], Any]) -> None:
        """Passes events on in the event loop."""
        super().__init__(threads, plain)
        self._passing = asyncio.ensure_future(self._pass(on_event))

    async def stop(self) -> None:
        """Ends the watch."""
        self._passing.cancel()
        await self._threads.run(self._plain.stop)

    async def _pass(self, on_event: Callable[[Any], Any]) -> None:
        while True:
            for event in self._plain.get_new_events():
                done = on_event(event)
                if inspect.isawaitable(done):
                    await done
            await asyncio.sleep(LOOK_SECONDS)


class AsyncSandboxPaginator(Wrapped[SandboxPaginator]):
    """Pages of the organization's sandboxes."""

    @property
    def has_next(self) -> bool:
        """Whether there may be another page."""
        return self._plain.has_next

    next_items = called(SandboxPaginator.next_items)


class AsyncSandbox(Wrapped[Sandbox]):
    """A sandbox. The end of an `async with` block kills it."""

    @property
    def sandbox_id(self) -> str:
        """Its id, for `AsyncSandbox.connect`."""
        return self._plain.sandbox_id

    @property
    def native(self) -> Any:
        """The same sandbox, not for asyncio, with roomd's complete interface."""
        return self._plain.native

    @property
    def files(self) -> AsyncFilesystem:
        """Its files."""
        return AsyncFilesystem(self._threads, self._plain.files)

    @property
    def commands(self) -> AsyncCommands:
        """Its commands."""
        return AsyncCommands(self._threads, self._plain.commands)

    @classmethod
    async def create(cls, template: str | None = None, timeout: float | None = None, **options: Any) -> "AsyncSandbox":
        """As `Sandbox.create`."""
        threads = Threads()
        try:
            return cls(threads, await threads.run(Sandbox.create, template, timeout, **options))
        except BaseException:
            threads.close()
            raise

    @classmethod
    async def connect(cls, sandbox_id: str, timeout: float | None = None, **options: Any) -> "AsyncSandbox":
        """As `Sandbox.connect`."""
        threads = Threads()
        try:
            return cls(threads, await threads.run(Sandbox.connect, sandbox_id, timeout, **options))
        except BaseException:
            threads.close()
            raise

    @classmethod
    def list(
        cls, query: SandboxQuery | None = None, limit: int | None = None, **options: Any
    ) -> AsyncSandboxPaginator:
        """As `Sandbox.list`."""
        return AsyncSandboxPaginator(Threads(), Sandbox.list(query, limit, **options))

    async def is_running(self) -> bool:
        """Whether it runs."""
        return await self._threads.run(self._plain.is_running)

    async def set_timeout(self, timeout: float) -> None:
        """Sets its end, `timeout` seconds from now."""
        await self._threads.run(self._plain.set_timeout, timeout)

    async def get_info(self) -> SandboxInfo:
        """Describes it."""
        return await self._threads.run(self._plain.get_info)

    async def pause(self) -> bool:
        """Saves it to disk with its memory. `connect` resumes it, as does the next use."""
        return await self._threads.run(self._plain.pause)

    async def kill(self) -> bool:
        """Ends it. False if it has ended."""
        return await self._threads.run(self._plain.kill)

    async def expose_port(self, port: int, *, wait: bool = False) -> str:
        """Exposes a port publicly, and returns its URL."""
        return await self._threads.run(self._plain.expose_port, port, wait=wait)

    def get_host(self, port: int) -> str:
        """Host, and path if there is one, of the URL of a port; call `await expose_port(port)` before."""
        return self._plain.get_host(port)

    async def __aenter__(self) -> "AsyncSandbox":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        try:
            await self._threads.run(self._plain.__exit__, kind, error, at)
        finally:
            self._threads.close()


def _in_loop(handler: OutputHandler | None) -> OutputHandler | None:
    """A handler that runs in the current event loop."""
    if handler is None:
        return None
    loop, tell = asyncio.get_running_loop(), handler

    async def told(text: str) -> None:
        done = tell(text)
        if inspect.isawaitable(done):
            await done

    # The command waits for its handler, so that output stays in order.
    return lambda text: asyncio.run_coroutine_threadsafe(told(text), loop).result()
