"""Owns the files of a sandbox's own disk, which are reached by commands in it.

What several agents share goes on the room's drive; that is /mnt/drive here too.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, Unpack

from .cancel import Cancel
from .client import Client
from .errors import Cancelled, RoomdError, TimeoutError
from .execution import ENDING_MS, CommandResult, Execution, SandboxName
from .transport import CallOptions, Calls, FileBody

FileKind = Literal["file", "directory", "symlink", "other"]

PART_BYTES = 4 * 1024 * 1024
"""Read by one command."""
NOT_THERE = 44
"""How the commands here say that there is no such file."""
BROKEN_OFF = (Cancelled, TimeoutError)
"""When nobody waits for a command here any more, it ends."""
KINDS: dict[str, FileKind] = {"f": "file", "d": "directory", "l": "symlink"}

IF_THERE = f'[ -e "$1" ] || [ -L "$1" ] || exit {NOT_THERE}; '
SHOWN = r"-printf '%y %s %T@ %f\0'"
"""Of an entry its kind, size, time and name, ended by a zero: a name may have anything else."""
IF_DIRECTORY = '[ -d "$1" ] || { echo "$1 is no directory" >&2; exit 1; }; '
READ = IF_THERE + f'dd if="$1" bs={PART_BYTES} skip="$2" count=1 iflag=fullblock status=none'
WRITE = 'mkdir -p -- "$(dirname -- "$1")" && cat >"$1"'
LIST = IF_THERE + IF_DIRECTORY + f'find "$1/" -mindepth 1 -maxdepth 1 {SHOWN}'
STAT = IF_THERE + f'find -L "$1" -maxdepth 0 {SHOWN}'
REMOVE, REMOVE_ALL = IF_THERE + 'rm -- "$1"', IF_THERE + 'rm -rf -- "$1"'
MKDIR = 'mkdir -p -- "$1"'


@dataclass(frozen=True)
class FileEntry:
    name: str
    kind: FileKind
    size: int
    modified_at: datetime


class Files:
    def __init__(self, client: Client, sandbox: SandboxName) -> None:
        self._client = client
        self._sandbox = sandbox

    def open(self, path: str, **options: Unpack[CallOptions]) -> Iterator[bytes] | None:
        """The file in parts, as it is read; None where there is none."""
        calls = Calls(options)
        first = self._part(path, 0, calls)
        return None if first is None else self._from(first, path, calls)

    def read(self, path: str, **options: Unpack[CallOptions]) -> bytes | None:
        """The whole file; None where there is none."""
        parts = self.open(path, **options)
        return None if parts is None else b"".join(parts)

    def read_text(self, path: str, **options: Unpack[CallOptions]) -> str | None:
        data = self.read(path, **options)
        return None if data is None else data.decode()

    def write(self, path: str, data: FileBody, **options: Unpack[CallOptions]) -> None:
        """Writes a file in place, and makes the directories above it."""
        calls = Calls(options)
        writing = self._start(WRITE, [path], calls)
        try:
            for part in _parts_of(data):
                writing.write(part, **calls.next())
            writing.end(**calls.next())
            done = writing.wait(timeout_ms=calls.left_ms)
        except Cancelled:
            writing.abandon()
            raise
        except Exception as error:
            writing.abandon()
            failed = _failure_of(writing)
            if failed is not None:
                # Why it took no more is what the command says.
                raise failed from error
            raise
        except BaseException:
            writing.abandon()
            raise
        _succeeded(done)

    def list(self, path: str, **options: Unpack[CallOptions]) -> Sequence[FileEntry] | None:
        """What is in a directory, without what is below; None where there is none."""
        listed = self._run(LIST, path, Calls(options))
        return None if listed is None else [_entry(line) for line in listed.stdout.split("\0") if line]

    def stat(self, path: str, **options: Unpack[CallOptions]) -> FileEntry | None:
        """Of a link what it leads to; None where there is none."""
        shown = self._run(STAT, path, Calls(options))
        return None if shown is None else _entry(shown.stdout.removesuffix("\0"))

    def mkdir(self, path: str, **options: Unpack[CallOptions]) -> None:
        self._run(MKDIR, path, Calls(options))

    def delete(self, path: str, *, recursive: bool = False, **options: Unpack[CallOptions]) -> bool:
        """False where there was none. A directory only if `recursive` is given."""
        return self._run(REMOVE_ALL if recursive else REMOVE, path, Calls(options)) is not None

    def _from(self, first: bytes, path: str, calls: Calls) -> Iterator[bytes]:
        part: bytes | None = first
        index = 0
        while part:
            yield part
            if len(part) < PART_BYTES:
                return
            index += 1
            part = self._part(path, index, calls)

    def _part(self, path: str, index: int, calls: Calls) -> bytes | None:
        done = self._run(READ, path, calls, str(index))
        return None if done is None else done.stdout_bytes

    def _start(self, script: str, args: Sequence[str], calls: Calls, stdin_open: bool = True) -> Execution:
        # A name that begins with - would be an option, or with ( a condition.
        path, *more = args
        command = ["sh", "-c", script, "sh", path if path[:1] in ("", "/") else f"./{path}", *more]
        return Execution.start(
            self._client, self._sandbox, command, stdin_open=stdin_open, kill_on=BROKEN_OFF, **calls.next()
        )

    def _run(self, script: str, path: str, calls: Calls, *more: str) -> CommandResult | None:
        """None where the path leads to nothing."""
        running = self._start(script, [path, *more], calls, stdin_open=False)
        try:
            done = running.wait(timeout_ms=calls.left_ms, kill_on_cancel=True)
        except TimeoutError:
            running.abandon()
            raise
        return None if done.exit_code == NOT_THERE else _succeeded(done)


def _succeeded(done: CommandResult) -> CommandResult:
    if done.exit_code == 0:
        if done.truncated or done.stdout_truncated:
            raise RoomdError("It is too much for one answer.")
        return done
    ending = done.signal if done.exit_code is None else done.exit_code
    raise RoomdError(done.stderr.strip() or f"The command ended with {ending}.")


def _failure_of(ended: Execution) -> RoomdError | None:
    """What a command says that failed by itself; None of one that was ended by a signal, as from here."""
    with Cancel(), suppress(RoomdError):
        done = ended.wait(timeout_ms=ENDING_MS)
        if done.exit_code is not None:
            try:
                _succeeded(done)
            except RoomdError as failed:
                return failed
    return None


def _parts_of(data: FileBody) -> Iterator[str | bytes]:
    if isinstance(data, (str, bytes, bytearray, memoryview)):
        yield data if isinstance(data, str) else bytes(data)
    elif isinstance(data, os.PathLike):
        with open(data, "rb") as file:
            while part := file.read(PART_BYTES):
                yield part
    else:
        yield from data


def _entry(line: str) -> FileEntry:
    kind, size, seconds, name = line.split(" ", 3)
    return FileEntry(name, KINDS.get(kind, "other"), int(size), datetime.fromtimestamp(float(seconds), UTC))
