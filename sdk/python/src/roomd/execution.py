"""A command in a sandbox: started under a name chosen by the client, so that it never runs twice, and followed until its end."""

import base64
import builtins
import codecs
import math
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, Unpack, cast

from ._generated.schemas import Execution as ExecutionRecord
from ._generated.schemas import ExitEvent
from .client import Client, digest_of, given
from .coroutines import aio, aiter_of, blocking, iterating
from .errors import NotFoundError, ProblemError, RoomdError, StreamError, TimeoutError
from .network import CANCELLED
from .spellings import strict
from .transport import CallOptions, Calls, deadline_of

Command = str | Sequence[str]
"""A command line for /bin/sh, or a program with its arguments."""
OutputHeard = Callable[[str], None]

DEFAULT_COMMAND_MS = 600_000
STDIN_PART_BYTES = 1024 * 1024
MAX_OUTPUT_BYTES = 16 * 1024 * 1024
"""Default limit of each stream in a result."""
REPR_CHARACTERS = 1000
"""Limit of each stream in the `repr` of a result."""
ENDING_MS = 30_000
"""How long to keep trying to end an abandoned command or room."""
STARTING_SECONDS = 2.0
"""Delay with which a cancelled start may still arrive."""


class CommandOptions(CallOptions, total=False):
    """Options of `exec` and `start`."""

    cwd: str
    """Working directory; the user's home by default."""
    env: Mapping[str, str]
    """Environment variables, in addition to the sandbox's."""
    user: str
    """User name or id; root by default."""
    stdin: str | bytes
    """Standard input of the command."""
    command_timeout_ms: float
    """Alias of `timeout_ms`, the time limit of the command: SIGTERM to its process group, SIGKILL 5 s later.

    10 minutes by default with `exec`, none with `start`; 0 is no limit, 7 days the maximum. `wait_ms` bounds the waiting."""
    output_to: str
    """Directory of the drive where the full streams are saved as stdout and stderr."""
    exec_id: str
    """Name of the run: the same name never runs twice in the sandbox."""
    max_output_bytes: int
    """Most bytes of each stream in the result of `exec`; 16 MiB by default. Callbacks get all of it."""


class SandboxName(TypedDict):
    room_id: str
    sandbox: str


@strict
@dataclass(frozen=True, repr=False)
class CommandResult:
    """The outcome of a command that has ended."""

    exec_id: str
    """Name of the run."""
    exit_code: int | None
    """None if a signal or the time limit ended it."""
    signal: str | None
    """Name of the signal that ended it, such as SIGKILL."""
    timed_out: bool
    """Whether its time limit ended it."""
    duration_ms: int
    """Duration of the run in ms."""
    stdout_bytes: bytes
    """Standard output as bytes."""
    stderr_bytes: bytes
    """Standard error as bytes."""
    stdout_truncated: bool = False
    """Whether standard output was longer than `max_output_bytes`."""
    stderr_truncated: bool = False
    """Whether standard error was longer than `max_output_bytes`."""
    truncated: bool = False
    """Whether output was dropped before it was read: the service keeps the last 16 MiB."""
    oom: bool = False
    """Whether the kernel ended a process of it because the sandbox ran out of memory."""

    @property
    def stdout(self) -> str:
        """Standard output as text."""
        return self.stdout_bytes.decode(errors="replace")

    @property
    def stderr(self) -> str:
        """Standard error as text."""
        return self.stderr_bytes.decode(errors="replace")

    def __repr__(self) -> str:
        end = next((f", {name}={value!r}" for name in ("signal", "timed_out", "oom") if (value := getattr(self, name))), "")
        texts = ", ".join(f"{name}={_shown(getattr(self, name))}" for name in ("stdout", "stderr"))
        return f"CommandResult(exit_code={self.exit_code}, {texts}{end})"


def _shown(text: str) -> str:
    return repr(text if len(text) <= REPR_CHARACTERS else f"{text[:REPR_CHARACTERS]}…")


@dataclass(frozen=True)
class OutputPart:
    """A part of the output of a command."""

    stream: Literal["stdout", "stderr"]
    """The stream that it belongs to."""
    bytes: "builtins.bytes"
    """Its content."""

    @property
    def data(self) -> "builtins.bytes":
        """Alias of `bytes`."""
        return self.bytes


@strict
class Execution:
    """A command that was started."""

    def __init__(self, client: Client, sandbox: SandboxName, id: str) -> None:
        """A command by its name. No call is made."""
        self.id = id
        """Name of the run (`exec_id`)."""
        self._client = client
        self._name = {**sandbox, "exec_id": id}
        self._writing = client._network.lock()
        # Bytes of standard input so far; None if the service must be queried, as after a failed write.
        self._written: int | None = None

    @classmethod
    @blocking
    async def start(
        cls,
        client: Client,
        sandbox: SandboxName,
        command: Command,
        *,
        stdin_open: bool = True,
        kill_on: tuple[type[BaseException], ...] = (),
        **options: Unpack[CommandOptions],
    ) -> "Execution":
        """Starts a command. Its standard input stays open unless `stdin` is given or `stdin_open` is False.

        If the start raises one of `kill_on`, the command is ended.
        """
        stdin = options.get("stdin")
        key = options.get("idempotency_key")
        # The same key means the same call, also from another process: it gets the same name.
        exec_id = options.get("exec_id") or f"sdk-{uuid.uuid4() if key is None else digest_of(key)}"
        wanted = given(
            **{key: options.get(key) for key in ("cwd", "env", "user", "output_to")},
            **({"command": command} if isinstance(command, str) else {"argv": list(command)}),
            **({"stdin": stdin} if isinstance(stdin, str) else {"stdin_b64": _base64(stdin)}),
            timeout_ms=_limit_of(options, 0),
            # Closed if the caller cannot write: a command that reads it would wait forever.
            stdin_open=None if stdin_open or stdin is not None else False,
        )
        made = cls(client, sandbox, exec_id)
        try:
            await client._call("execution_start", _waiting(options), **sandbox, exec_id=exec_id, **wanted)
        except kill_on:
            await client._network.finish(aio(made.abandon)(STARTING_SECONDS))
            raise
        return made

    @classmethod
    @blocking
    async def run(
        cls,
        client: Client,
        sandbox: SandboxName,
        command: Command,
        *,
        on_stdout: OutputHeard | None = None,
        on_stderr: OutputHeard | None = None,
        kill_on_cancel: bool = False,
        **options: Unpack[CommandOptions],
    ) -> CommandResult:
        """Runs a command and waits for its end. `wait_ms` bounds both; after it the command continues."""
        deadline = None if (wait_ms := options.get("wait_ms")) is None else deadline_of(wait_ms)
        options["timeout_ms"] = _limit_of(options, DEFAULT_COMMAND_MS)
        kill_on = CANCELLED if kill_on_cancel else ()
        started = await aio(cls.start)(client, sandbox, command, stdin_open=False, kill_on=kill_on, **options)
        left_ms = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
        return await aio(started.wait)(
            on_stdout=on_stdout,
            on_stderr=on_stderr,
            kill_on_cancel=kill_on_cancel,
            max_output_bytes=options.get("max_output_bytes"),
            wait_ms=left_ms,
        )

    @blocking
    async def get(self, **options: Unpack[CallOptions]) -> ExecutionRecord:
        """Its record."""
        return await self._client._call("execution_get", options, **self._name)

    @iterating
    async def output(self) -> AsyncGenerator[OutputPart, None]:
        """Yields its output until it ends, from the oldest that the service keeps."""
        async with aclosing(self._told()) as told:
            async for each in told:
                if isinstance(each, OutputPart):
                    yield each

    @blocking
    async def wait(
        self,
        *,
        on_stdout: OutputHeard | None = None,
        on_stderr: OutputHeard | None = None,
        kill_on_cancel: bool = False,
        max_output_bytes: int | None = None,
        wait_ms: float | None = None,
        timeout_ms: float | None = None,
    ) -> CommandResult:
        """Waits for its end. A command that fails is no error: see `exit_code`.

        With `kill_on_cancel` a cancelled call, or a callback that raises, ends the command as well as the wait. With
        `wait_ms` it raises TimeoutError after this time, and the command continues; `timeout_ms` is an alias.
        """
        wait_ms = timeout_ms if wait_ms is None else wait_ms
        most = MAX_OUTPUT_BYTES if max_output_bytes is None else max_output_bytes
        streams = {"stdout": _Heard(on_stdout, most), "stderr": _Heard(on_stderr, most)}
        was_lost = False
        try:
            # An exception in this block closes the stream immediately.
            async with aclosing(self._told(wait_ms)) as told:
                async for each in told:
                    if isinstance(each, OutputPart):
                        streams[each.stream].take(each.bytes)
                    elif each is None:
                        was_lost = True
                    else:
                        return _result(self.id, each, streams["stdout"], streams["stderr"], was_lost)
        except TimeoutError as error:
            if wait_ms is None:
                raise
            raise TimeoutError(f"The command {self.id} has not ended in time and continues.") from error
        except BaseException as error:
            if kill_on_cancel and (isinstance(error, CANCELLED) or not isinstance(error, RoomdError)):
                await self._client._network.finish(aio(self.abandon)())
            raise
        raise AssertionError("the last event is the exit")

    @blocking
    async def abandon(self, starting_seconds: float = 0) -> None:
        """Tries to end an abandoned command; errors are ignored.

        If it does not exist, retries for `starting_seconds`: its start may still be in transit.
        """
        deadline, pause = time.monotonic() + starting_seconds, 0.1
        with suppress(RoomdError):
            while True:
                try:
                    await aio(self.kill)(timeout_ms=ENDING_MS)
                    return
                except NotFoundError:
                    if time.monotonic() >= deadline:
                        return
                    await self._client._network.pause(pause)
                    pause *= 2

    @blocking
    async def write(self, data: str | bytes, **options: Unpack[CallOptions]) -> None:
        """Writes to its standard input, in the order of the calls. Retries deliver no byte twice."""
        await self._stdin(data.encode() if isinstance(data, str) else data, False, options)

    @blocking
    async def end(self, **options: Unpack[CallOptions]) -> None:
        """Ends its standard input."""
        await self._stdin(b"", True, options)

    @blocking
    async def signal(self, signal: str, **options: Unpack[CallOptions]) -> ExecutionRecord:
        """Sends a signal, such as "SIGINT", to its process group."""
        input: dict[str, Any] = {"signal": signal}
        return await self._client._call("execution_signal", options, **self._name, **input)

    @blocking
    async def kill(self, **options: Unpack[CallOptions]) -> ExecutionRecord:
        """Ends it and its child processes; returns when none is left."""
        return await self._client._call("execution_end", options, **self._name)

    async def _stdin(self, data: bytes, eof: bool, options: CallOptions) -> None:
        calls = Calls(options)
        async with self._writing.turn():
            offset = self._written
            if offset is None:
                offset = (await aio(self.get)(**calls.next()))["stdin_bytes"]
            self._written = None
            for start in range(0, max(1, len(data)), STDIN_PART_BYTES):
                part = data[start : start + STDIN_PART_BYTES]
                ends = eof and start + len(part) == len(data)
                wanted = {**self._name, "data_b64": _base64(part), "offset": offset, "eof": ends}
                await self._client._call("execution_stdin", calls.next(), **wanted)
                offset += len(part)
            self._written = offset

    async def _told(self, wait_ms: float | None = None) -> AsyncGenerator[OutputPart | ExitEvent | None, None]:
        """Yields its output and last its exit event; None if output is missing that the service no longer keeps."""
        calls = Calls({} if wait_ms is None else {"wait_ms": wait_ms})
        after: int | None = None
        while True:
            try:
                place = given(after=after)
                stream = aiter_of(self._client.events)("execution_stream", calls.next(), **self._name, **place)
                async with aclosing(stream) as events:
                    async for event in events:
                        after = event.get("seq", after)
                        if event["type"] == "exit":
                            yield ExitEvent(**event)
                            return
                        if event["type"] in ("stdout", "stderr"):
                            yield OutputPart(event["type"], base64.b64decode(event["data_b64"]))
                raise RoomdError("The stream ended before the command did.")
            except (ProblemError, StreamError) as error:
                if error.code != "history_gone":
                    raise
                oldest = (await aio(self.get)(**calls.next()))["oldest_seq"] - 1
                if after is not None and oldest <= after:
                    # The service keeps all of the remaining output, and still does not return it.
                    raise
                after = oldest
            yield None


def _limit_of(options: CommandOptions, default_ms: float) -> int:
    """The time limit of the command in ms; 0: unlimited."""
    limit_ms = options.get("timeout_ms", options.get("command_timeout_ms", default_ms))
    return 0 if math.isinf(limit_ms) else round(limit_ms)


def _waiting(options: CommandOptions) -> CallOptions:
    """The options of the call, without the time limit of the command."""
    made: dict[str, Any] = {name: options[name] for name in ("wait_ms", "idempotency_key", "headers") if name in options}
    return cast(CallOptions, made)


class _Heard:
    """Output of one stream: stored up to a limit, and passed to a callback as text without split characters."""

    def __init__(self, told: OutputHeard | None, most_bytes: int) -> None:
        self.kept = bytearray()
        self.is_truncated = False
        self._told = told
        self._most_bytes = most_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def take(self, data: bytes) -> None:
        room = max(0, self._most_bytes - len(self.kept))
        self.kept += data[:room]
        self.is_truncated = self.is_truncated or len(data) > room
        if self._told is not None and (text := self._decoder.decode(data)):
            self._told(text)


def _result(exec_id: str, exit: ExitEvent, stdout: _Heard, stderr: _Heard, was_lost: bool) -> CommandResult:
    return CommandResult(
        exec_id=exec_id,
        exit_code=exit["exit_code"],
        signal=exit["signal"],
        timed_out=exit["timed_out"],
        duration_ms=exit["duration_ms"],
        stdout_bytes=bytes(stdout.kept),
        stderr_bytes=bytes(stderr.kept),
        stdout_truncated=stdout.is_truncated,
        stderr_truncated=stderr.is_truncated,
        truncated=was_lost,
        oom=exit.get("oom", False),
    )


def _base64(data: str | bytes | None) -> str | None:
    if data is None:
        return None
    return base64.b64encode(data.encode() if isinstance(data, str) else data).decode()
