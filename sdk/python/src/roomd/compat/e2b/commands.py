"""Commands of a sandbox by E2B's interface. A command is identified by its pid in the guest."""

import builtins
import codecs
import signal
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, overload

from ...cancel import Cancel
from ...client import Client, given
from ...coroutines import aio, aiter_of, blocking, run
from ...errors import Cancelled
from ...execution import MAX_OUTPUT_BYTES, Execution
from ...sandbox import Sandbox as NativeSandbox
from .errors import (
    CommandExitException,
    CommandResult,
    NotFoundException,
    SandboxException,
    TimeoutException,
    translating,
    unless_missing,
)

HOME = "/home/user"
"""Directory of commands and of relative paths, as in E2B's templates."""
DEFAULT_SECONDS = 60.0
BY_SIGNAL = 128
OutputHandler = Callable[[str], Any]
"""Called with text as it arrives."""


@dataclass
class ProcessInfo:
    """A running command."""

    pid: int
    """Process id in the guest."""
    tag: str | None
    """Always None."""
    cmd: str
    """The program."""
    args: list[str]
    """Its arguments."""
    envs: dict[str, str] = field(default_factory=dict)
    """Always empty."""
    cwd: str | None = None
    """Its working directory."""


class CommandHandle:
    """A command that was started in the background. Iterating over it yields (stdout, stderr, None) as they arrive."""

    def __init__(self, pid: int, execution: Execution) -> None:
        """Follows a command from its first output that is kept."""
        self._pid = pid
        self._execution = execution
        self._cancel = Cancel()
        self._parts = aiter_of(execution.output)()
        self._texts = {"stdout": "", "stderr": ""}
        self._decoders = {name: codecs.getincrementaldecoder("utf-8")("replace") for name in self._texts}

    @property
    def pid(self) -> int:
        """Process id in the guest."""
        return self._pid

    @property
    def stdout(self) -> str:
        """Standard output that was read so far."""
        return self._texts["stdout"]

    @property
    def stderr(self) -> str:
        """Standard error that was read so far."""
        return self._texts["stderr"]

    def __iter__(self) -> Iterator[tuple[str | None, str | None, None]]:
        while True:
            try:
                with self._cancel:
                    texts = run(self._next())
            except Cancelled as error:
                raise SandboxException("The command was disconnected.") from error
            if texts is None:
                return
            yield *texts, None

    def wait(
        self,
        on_pty: Callable[[bytes], Any] | None = None,
        on_stdout: OutputHandler | None = None,
        on_stderr: OutputHandler | None = None,
    ) -> CommandResult:
        """Waits for its end.

        Raises CommandExitException if it exits with a code other than 0, TimeoutException if its time limit ended it.
        """
        for out, err, _ in self:
            if out is not None and on_stdout is not None:
                on_stdout(out)
            if err is not None and on_stderr is not None:
                on_stderr(err)
        return run(self._result())

    async def _next(self) -> tuple[str | None, str | None] | None:
        """The next texts of standard output and standard error; None after the last."""
        while True:
            with translating():
                part = await anext(self._parts, None)
            if part is None:
                return None
            text = self._decoders[part.stream].decode(part.bytes)
            left = MAX_OUTPUT_BYTES - len(self._texts[part.stream])
            self._texts[part.stream] += text[: max(0, left)]
            if text:
                return (text, None) if part.stream == "stdout" else (None, text)

    async def _result(self) -> CommandResult:
        with translating():
            ended = await aio(self._execution.get)()
        if ended["timed_out"]:
            raise TimeoutException("The command was ended by its time limit: set `timeout`, 0 for none.")
        code = _exit_code(ended["exit_code"], ended["signal"])
        if code != 0:
            raise CommandExitException(self.stderr, self.stdout, code)
        return CommandResult(self.stderr, self.stdout, code)

    def disconnect(self) -> None:
        """Stops following it; it keeps running."""
        self._cancel.cancel()
        # If another thread reads it, that thread closes it.
        with suppress(RuntimeError):
            run(self._parts.aclose())

    @blocking
    async def kill(self) -> bool:
        """Ends it and its child processes. False if it does not exist."""
        return await unless_missing(aio(self._execution.kill))

    @blocking
    async def send_stdin(self, data: str | bytes, request_timeout: float | None = None) -> None:
        """Writes to its standard input."""
        with translating():
            await aio(self._execution.write)(data, **_limits(request_timeout))

    @blocking
    async def close_stdin(self, request_timeout: float | None = None) -> None:
        """Ends its standard input."""
        with translating():
            await aio(self._execution.end)(**_limits(request_timeout))


class Commands:
    """Runs commands by `/bin/sh -c`."""

    def __init__(self, client: Client, sandbox: NativeSandbox) -> None:
        """The commands of a sandbox."""
        self._client = client
        self._sandbox = sandbox

    @overload
    def run(
        self,
        cmd: str,
        background: Literal[False] | None = None,
        envs: Mapping[str, str] | None = None,
        user: str | None = None,
        cwd: str | None = None,
        on_stdout: OutputHandler | None = None,
        on_stderr: OutputHandler | None = None,
        stdin: bool | None = None,
        timeout: float | None = DEFAULT_SECONDS,
        request_timeout: float | None = None,
    ) -> CommandResult: ...
    @overload
    def run(
        self,
        cmd: str,
        background: Literal[True],
        envs: Mapping[str, str] | None = None,
        user: str | None = None,
        cwd: str | None = None,
        on_stdout: OutputHandler | None = None,
        on_stderr: OutputHandler | None = None,
        stdin: bool | None = None,
        timeout: float | None = DEFAULT_SECONDS,
        request_timeout: float | None = None,
    ) -> CommandHandle: ...
    def run(
        self,
        cmd: str,
        background: bool | None = None,
        envs: Mapping[str, str] | None = None,
        user: str | None = None,
        cwd: str | None = None,
        on_stdout: OutputHandler | None = None,
        on_stderr: OutputHandler | None = None,
        stdin: bool | None = None,
        timeout: float | None = DEFAULT_SECONDS,
        request_timeout: float | None = None,
    ) -> CommandResult | CommandHandle:
        """Runs a command and waits for its end; with `background` it returns a handle once the command has started.

        `timeout` ends the command after this many seconds, 60 by default; 0 or None is no limit. The user
        "user" means the default user of commands.
        """
        wanted: Any = {"envs": envs, "user": user, "cwd": cwd, "stdin": stdin}
        handle = run(self._start(cmd, background, timeout=timeout, request_timeout=request_timeout, **wanted))
        return handle if background else handle.wait(on_stdout=on_stdout, on_stderr=on_stderr)

    async def _start(
        self,
        cmd: str,
        background: bool | None = None,
        envs: Mapping[str, str] | None = None,
        user: str | None = None,
        cwd: str | None = None,
        stdin: bool | None = None,
        timeout: float | None = DEFAULT_SECONDS,
        request_timeout: float | None = None,
    ) -> CommandHandle:
        options: Any = given(
            cwd=cwd or HOME,
            env=envs,
            user=None if user == "user" else user,
            stdin=None if stdin or background else "",
        )
        with translating():
            start = aio(self._sandbox.start)
            execution = await start(cmd, timeout_ms=(timeout or 0) * 1000, **options, **_limits(request_timeout))
            return CommandHandle((await aio(execution.get)())["pid"] or 0, execution)

    @blocking
    async def list(self, request_timeout: float | None = None) -> "builtins.list[ProcessInfo]":
        """The running commands."""
        with translating():
            return [info async for _, info in self._running(request_timeout)]

    @blocking
    async def connect(
        self, pid: int, timeout: float | None = DEFAULT_SECONDS, request_timeout: float | None = None
    ) -> CommandHandle:
        """Follows a running command from its first output that is kept. `timeout` has no effect."""
        return CommandHandle(pid, await self._known(pid, request_timeout))

    @blocking
    async def kill(self, pid: int, request_timeout: float | None = None) -> bool:
        """Ends a command and its child processes. False if no such command runs."""
        with translating():
            execution = await self._find(pid, request_timeout)
        return execution is not None and await unless_missing(aio(execution.kill))

    @blocking
    async def send_stdin(self, pid: int, data: str | bytes, request_timeout: float | None = None) -> None:
        """Writes to the standard input of a command."""
        execution = await self._known(pid, request_timeout)
        with translating():
            await aio(execution.write)(data, **_limits(request_timeout))

    @blocking
    async def close_stdin(self, pid: int, request_timeout: float | None = None) -> None:
        """Ends the standard input of a command."""
        execution = await self._known(pid, request_timeout)
        with translating():
            await aio(execution.end)(**_limits(request_timeout))

    async def _known(self, pid: int, request_timeout: float | None) -> Execution:
        with translating():
            execution = await self._find(pid, request_timeout)
        if execution is None:
            raise NotFoundException(f"No command with pid {pid} runs: see commands.list().")
        return execution

    async def _find(self, pid: int, request_timeout: float | None) -> Execution | None:
        async for exec_id, info in self._running(request_timeout):
            if info.pid == pid:
                return self._sandbox.execution(exec_id)
        return None

    async def _running(self, request_timeout: float | None) -> AsyncGenerator[tuple[str, ProcessInfo], None]:
        name: Any = {"room_id": self._sandbox.room_id, "sandbox": self._sandbox.agent_id}
        async for each in aiter_of(self._client.items)("execution_list", _limits(request_timeout), **name):
            if each["state"] == "running":
                cmd, *args = each["argv"] or [""]
                yield each["exec_id"], ProcessInfo(each["pid"] or 0, None, cmd, args, {}, each["cwd"])


def _exit_code(code: int | None, name: str | None) -> int:
    """The exit code, or the one that a shell shows for a signal."""
    if code is not None:
        return code
    number = signal.Signals.__members__.get(name or "")
    return BY_SIGNAL + (0 if number is None else number.value)


def _limits(request_timeout: float | None) -> Any:
    return given(wait_ms=None if request_timeout is None else request_timeout * 1000)
