"""Files of a sandbox by E2B's interface. Relative paths are below /home/user."""

import builtins
import posixpath
import queue
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from io import TextIOBase
from typing import IO, Any, Literal, TypedDict, overload

from ..._generated.schemas import SandboxFileEntry
from ...cancel import Cancel
from ...client import Client, Download, given
from ...coroutines import aio, aiter_of, blocking, run
from ...errors import Cancelled, RoomdError
from ...sandbox import Sandbox as NativeSandbox
from .commands import HOME
from .errors import InvalidArgumentException, SandboxException, translating


class FileType(Enum):
    """Kinds of entries."""

    FILE = "file"
    DIR = "dir"
    SYMLINK = "symlink"


@dataclass
class WriteInfo:
    """A file that was written."""

    name: str
    """Its name."""
    type: FileType | None
    """Its kind; None for devices, pipes and sockets."""
    path: str
    """Its absolute path."""


@dataclass
class EntryInfo(WriteInfo):
    """An entry of a directory."""

    size: int
    """Size in bytes."""
    mode: int
    """Permission bits."""
    permissions: str
    """Permissions as `ls -l` prints them, such as "-rw-r--r--"."""
    owner: str
    """Numeric user id."""
    group: str
    """Numeric group id."""
    modified_time: datetime
    """Time of the last change."""
    symlink_target: str | None = None
    """Target of a symbolic link."""


class WriteEntry(TypedDict):
    """A file to write."""

    path: str
    """Its path."""
    data: str | bytes | IO[Any]
    """Its content."""


class FilesystemEventType(Enum):
    """Kinds of changes."""

    CREATE = "create"
    WRITE = "write"
    REMOVE = "remove"
    RENAME = "rename"


@dataclass
class FilesystemEvent:
    """A change below a watched directory."""

    name: str
    """Path relative to the directory."""
    type: FilesystemEventType
    """Kind of the change."""


_TYPES = {"file": FileType.FILE, "directory": FileType.DIR, "symlink": FileType.SYMLINK}
_EVENTS = {
    "created": FilesystemEventType.CREATE,
    "modified": FilesystemEventType.WRITE,
    "deleted": FilesystemEventType.REMOVE,
    "moved": FilesystemEventType.RENAME,
}
MAX_EVENTS = 65_536
"""Maximum number of events that a handle keeps; the oldest are dropped."""


class WatchHandle:
    """A watch that is active. It collects changes in a thread until `stop`."""

    def __init__(self, client: Client, directory: str, input: dict[str, Any]) -> None:
        """Returns once changes are noticed."""
        self._directory = directory
        self._events: queue.Queue[FilesystemEvent] = queue.Queue()
        self._cancel = Cancel()
        self._error: RoomdError | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._follow, args=(client, input), daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._error is not None:
            with translating():
                raise self._error

    def get_new_events(self) -> list[FilesystemEvent]:
        """The changes since the last call. Raises SandboxException if the watch has ended by an error."""
        found: list[FilesystemEvent] = []
        while not self._events.empty():
            found.append(self._events.get_nowait())
        if not found and self._error is not None:
            raise SandboxException("The watch has ended.") from self._error
        return found

    def stop(self) -> None:
        """Ends the watch."""
        self._cancel.cancel()
        self._thread.join()

    def _follow(self, client: Client, input: dict[str, Any]) -> None:
        try:
            with self._cancel:
                for event in client.events("sandbox_file_watch", None, **input):
                    self._ready.set()
                    change = change_of(event, self._directory)
                    if change is None:
                        continue
                    if self._events.qsize() >= MAX_EVENTS:
                        self._events.get_nowait()
                    self._events.put(change)
        except Cancelled:
            pass
        except RoomdError as error:
            self._error = error
        finally:
            self._ready.set()


def change_of(event: Mapping[str, Any], directory: str) -> FilesystemEvent | None:
    """The change that an event of the service reports."""
    kind = _EVENTS.get(event["type"])
    return None if kind is None else FilesystemEvent(posixpath.relpath(event["path"], directory), kind)


class Filesystem:
    """Reads, writes, lists and watches files. `user` has no effect."""

    def __init__(self, client: Client, sandbox: NativeSandbox) -> None:
        """The files of a sandbox."""
        self._client = client
        self._sandbox = sandbox
        self._files = sandbox.files

    @overload
    def read(self, path: str, format: Literal["text"] = "text", user: str | None = None,
             request_timeout: float | None = None) -> str: ...
    @overload
    def read(self, path: str, format: Literal["bytes"], user: str | None = None,
             request_timeout: float | None = None) -> bytearray: ...
    @overload
    def read(self, path: str, format: Literal["stream"], user: str | None = None,
             request_timeout: float | None = None) -> Iterator[bytes]: ...
    def read(
        self,
        path: str,
        format: Literal["text", "bytes", "stream"] = "text",
        user: str | None = None,
        request_timeout: float | None = None,
    ) -> str | bytearray | Iterator[bytes]:
        """The content of a file, as text by default. Raises FileNotFoundException."""
        content = run(self._content(path, format, request_timeout))
        return iter(content) if isinstance(content, Download) else content

    async def _content(
        self, path: str, format: str, request_timeout: float | None = None
    ) -> str | bytearray | Download:
        with translating():
            if format == "stream":
                return await aio(self._files.open)(_absolute(path), **_limits(request_timeout))
            content = await aio(self._files.read)(_absolute(path), **_limits(request_timeout))
        return bytearray(content) if format == "bytes" else content.decode(errors="replace")

    @blocking
    async def write(
        self, path: str, data: str | bytes | IO[Any], user: str | None = None, request_timeout: float | None = None
    ) -> WriteInfo:
        """Writes a file, and makes the directories above it."""
        at = _absolute(path)
        content: Any = data.read().encode() if isinstance(data, TextIOBase) else data
        with translating():
            await aio(self._files.write)(at, content, **_limits(request_timeout))
        return WriteInfo(posixpath.basename(at), FileType.FILE, at)

    @blocking
    async def write_files(
        self, files: "builtins.list[WriteEntry]", user: str | None = None, request_timeout: float | None = None
    ) -> "builtins.list[WriteInfo]":
        """Writes several files; some of them may be written when one fails."""
        write = aio(self.write)
        return [await write(each["path"], each["data"], user, request_timeout) for each in files]

    @blocking
    async def list(
        self, path: str, depth: int | None = 1, user: str | None = None, request_timeout: float | None = None
    ) -> "builtins.list[EntryInfo]":
        """Entries of a directory, down to `depth` levels, 1 by default."""
        most = 1 if depth is None else depth
        if most < 1:
            raise InvalidArgumentException(f"depth is {most}: it must be at least 1.")
        at = _absolute(path)
        with translating():
            entries = aiter_of(self._files.list)(at, recursive=most > 1, **_limits(request_timeout))
            found = [each async for each in entries]
        return [_info(each) for each in found if _depth(each["path"], at) <= most]

    @blocking
    async def exists(self, path: str, user: str | None = None, request_timeout: float | None = None) -> bool:
        """Whether an entry exists."""
        with translating():
            return await aio(self._files.exists)(_absolute(path), **_limits(request_timeout))

    @blocking
    async def get_info(self, path: str, user: str | None = None, request_timeout: float | None = None) -> EntryInfo:
        """Describes an entry. Raises FileNotFoundException."""
        with translating():
            return _info(await aio(self._files.stat)(_absolute(path), follow=False, **_limits(request_timeout)))

    @blocking
    async def remove(self, path: str, user: str | None = None, request_timeout: float | None = None) -> None:
        """Removes a file, or a directory with its content."""
        with translating():
            await aio(self._files.remove)(_absolute(path), recursive=True, **_limits(request_timeout))

    @blocking
    async def rename(
        self, old_path: str, new_path: str, user: str | None = None, request_timeout: float | None = None
    ) -> EntryInfo:
        """Moves an entry; a file at the new path is replaced."""
        with translating():
            move = aio(self._files.move)
            await move(_absolute(old_path), _absolute(new_path), overwrite=True, **_limits(request_timeout))
        return await aio(self.get_info)(new_path, user, request_timeout)

    @blocking
    async def make_dir(self, path: str, user: str | None = None, request_timeout: float | None = None) -> bool:
        """Makes a directory and those above it. False if it exists."""
        if await aio(self.exists)(path, user, request_timeout):
            return False
        with translating():
            await aio(self._files.mkdir)(_absolute(path), **_limits(request_timeout))
        return True

    def watch_dir(
        self, path: str, user: str | None = None, request_timeout: float | None = None, recursive: bool = False
    ) -> WatchHandle:
        """Collects the changes in a directory until it is stopped. Raises FileNotFoundException."""
        return WatchHandle(self._client, *run(self._watched(path, recursive, request_timeout)))

    async def _watched(self, path: str, recursive: bool, request_timeout: float | None) -> tuple[str, dict[str, Any]]:
        """The absolute path of an entry that exists, and the parameters of its watch."""
        at = _absolute(path)
        await aio(self.get_info)(at, None, request_timeout)
        name = {"room_id": self._sandbox.room_id, "sandbox": self._sandbox.agent_id}
        return at, {**name, "path": at, "recursive": recursive}


def _absolute(path: str) -> str:
    return posixpath.normpath(posixpath.join(HOME, path))


def _depth(path: str, directory: str) -> int:
    return len(posixpath.relpath(path, directory).split("/"))


def _limits(request_timeout: float | None) -> Any:
    return given(wait_ms=None if request_timeout is None else request_timeout * 1000)


def _info(entry: SandboxFileEntry) -> EntryInfo:
    bits = int(entry["mode"], 8)
    return EntryInfo(
        name=entry["name"],
        type=_TYPES.get(entry["type"]),
        path=entry["path"],
        size=entry["size_bytes"],
        mode=bits,
        permissions=_permissions(entry["type"], bits),
        owner=str(entry["uid"]),
        group=str(entry["gid"]),
        modified_time=datetime.fromisoformat(entry["modified_at"]),
        symlink_target=entry.get("target"),
    )


def _permissions(type: str, bits: int) -> str:
    """As `ls -l` prints them."""
    first = {"file": "-", "directory": "d", "symlink": "l"}.get(type, "?")
    return first + "".join(letter if bits >> (8 - at) & 1 else "-" for at, letter in enumerate("rwxrwxrwx"))
