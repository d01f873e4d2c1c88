"""Owns a command in a sandbox.

It is begun by a name that is made here, so that it never runs twice, and followed until it says how it ended.
"""

import base64
import codecs
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict, Unpack

from ._generated.schemas import Execution as ExecutionRecord
from ._generated.schemas import ExitEvent
from .cancel import Cancel
from .client import Client, given
from .errors import Cancelled, RoomdError
from .transport import CallOptions

Command = str | Sequence[str]
"""A command line for /bin/sh, or a program with its arguments."""
OutputHeard = Callable[[str], None]

DEFAULT_COMMAND_MS = 600_000
STDIN_PART_BYTES = 1024 * 1024


class CommandOptions(CallOptions, total=False):
    cwd: str
    env: Mapping[str, str]
    user: str
    """root if absent."""
    stdin: str | bytes
    command_timeout_ms: int
    """After this time the command is killed; 10 minutes if absent, 60 at most."""
    output_to: str
    """Drive directory where the full streams are saved as stdout and stderr."""
    exec_id: str
    """The run's name: the same name never runs twice in the sandbox."""


class SandboxName(TypedDict):
    room_id: str
    sandbox: str


@dataclass(frozen=True)
class CommandResult:
    exec_id: str
    exit_code: int | None
    """None where a signal ended it."""
    signal: str | None
    timed_out: bool
    duration_ms: int
    stdout_bytes: bytes = field(repr=False)
    stderr_bytes: bytes = field(repr=False)

    @property
    def stdout(self) -> str:
        return self.stdout_bytes.decode(errors="replace")

    @property
    def stderr(self) -> str:
        return self.stderr_bytes.decode(errors="replace")


@dataclass(frozen=True)
class OutputPart:
    stream: Literal["stdout", "stderr"]
    data: bytes


class Execution:
    """A command that was begun, or that is known by its name."""

    def __init__(self, client: Client, sandbox: SandboxName, id: str) -> None:
        self.id = id
        self._client = client
        self._name = {**sandbox, "exec_id": id}
        self._writing = threading.Lock()
        # Bytes of standard input so far; None where it has to be asked, as after a write that failed.
        self._written: int | None = None

    @classmethod
    def start(
        cls, client: Client, sandbox: SandboxName, command: Command, **options: Unpack[CommandOptions]
    ) -> "Execution":
        stdin = options.get("stdin")
        exec_id = options.get("exec_id") or f"sdk-{uuid.uuid4()}"
        wanted = given(
            **{key: options.get(key) for key in ("cwd", "env", "user", "output_to")},
            **({"command": command} if isinstance(command, str) else {"argv": list(command)}),
            **({"stdin": stdin} if isinstance(stdin, str) else {"stdin_b64": _base64(stdin)}),
            timeout_ms=options.get("command_timeout_ms", DEFAULT_COMMAND_MS),
        )
        client.call("execution_start", options, **sandbox, exec_id=exec_id, **wanted)
        return cls(client, sandbox, exec_id)

    def get(self, **options: Unpack[CallOptions]) -> ExecutionRecord:
        return self._client.call("execution_get", options, **self._name)

    def output(self) -> Iterator[OutputPart]:
        """Everything that it writes, from its beginning as far as it is kept, until it has ended."""
        for each in self._told():
            if isinstance(each, OutputPart):
                yield each

    def wait(
        self,
        *,
        on_stdout: OutputHeard | None = None,
        on_stderr: OutputHeard | None = None,
        kill_on_cancel: bool = False,
    ) -> CommandResult:
        """Waits until it has ended. A command that fails is no error: look at `exit_code`.

        With `kill_on_cancel` cancelling ends the command too, and not only the waiting for it.
        """
        kept = {"stdout": bytearray(), "stderr": bytearray()}
        heard = {"stdout": _Hearing(on_stdout), "stderr": _Hearing(on_stderr)}
        try:
            for each in self._told():
                if isinstance(each, OutputPart):
                    kept[each.stream] += each.data
                    heard[each.stream].tell(each.data)
                else:
                    return _result(self.id, each, bytes(kept["stdout"]), bytes(kept["stderr"]))
        except Cancelled:
            if kill_on_cancel:
                # A call that what was cancelled does not reach.
                with Cancel(), suppress(RoomdError):
                    self.kill()
            raise
        raise AssertionError("the end is told last")

    def write(self, data: str | bytes, **options: Unpack[CallOptions]) -> None:
        """Writes to its standard input, one call after the other: bytes that are sent again arrive once."""
        self._stdin(data.encode() if isinstance(data, str) else data, False, options)

    def end(self, **options: Unpack[CallOptions]) -> None:
        """Ends its standard input."""
        self._stdin(b"", True, options)

    def signal(self, signal: str, **options: Unpack[CallOptions]) -> ExecutionRecord:
        input: dict[str, Any] = {"signal": signal}
        return self._client.call("execution_signal", options, **self._name, **input)

    def kill(self, **options: Unpack[CallOptions]) -> ExecutionRecord:
        """Ends it and everything that it has started; returns when nothing is left."""
        return self._client.call("execution_end", options, **self._name)

    def _stdin(self, data: bytes, eof: bool, options: CallOptions) -> None:
        with self._writing:
            offset = self.get(**options)["stdin_bytes"] if self._written is None else self._written
            self._written = None
            for start in range(0, max(1, len(data)), STDIN_PART_BYTES):
                part = data[start : start + STDIN_PART_BYTES]
                ends = eof and start + len(part) == len(data)
                wanted = {**self._name, "data_b64": _base64(part), "offset": offset, "eof": ends}
                self._client.call("execution_stdin", options, **wanted)
                offset += len(part)
            self._written = offset

    def _told(self) -> Iterator[OutputPart | ExitEvent]:
        """Its output, and at last how it ended."""
        with closing(self._client.events("execution_stream", **self._name)) as events:
            for event in events:
                if event["type"] == "exit":
                    yield ExitEvent(**event)
                    return
                if event["type"] in ("stdout", "stderr"):
                    yield OutputPart(event["type"], base64.b64decode(event["data_b64"]))
        raise RoomdError("The stream ended before the command did.")


class _Hearing:
    """Tells what comes in bytes as text, of which no character is torn."""

    def __init__(self, told: OutputHeard | None) -> None:
        self._told = told
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def tell(self, data: bytes) -> None:
        text = self._decoder.decode(data)
        if self._told is not None and text:
            self._told(text)


def _result(exec_id: str, exit: ExitEvent, stdout: bytes, stderr: bytes) -> CommandResult:
    return CommandResult(
        exec_id=exec_id,
        exit_code=exit["exit_code"],
        signal=exit["signal"],
        timed_out=exit["timed_out"],
        duration_ms=exit["duration_ms"],
        stdout_bytes=stdout,
        stderr_bytes=stderr,
    )


def _base64(data: str | bytes | None) -> str | None:
    if data is None:
        return None
    return base64.b64encode(data.encode() if isinstance(data, str) else data).decode()
