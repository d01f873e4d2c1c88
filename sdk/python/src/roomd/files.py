"""Files as a sandbox sees them: its disk and its mounts, served by the guest's agent in any image.

Files for several agents belong on the drive of the room, which is mounted at /mnt/drive.
"""

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path
from typing import Unpack, cast

from ._generated.schemas import FileChanged, SandboxFileEntry, WrittenSandboxFile
from .client import Client, Download, given
from .coroutines import aio, aiter_of, blocking, iterating
from .errors import NotFoundError, RoomdError
from .execution import SandboxName
from .headers import conditional, ranged
from .http1 import FileBody
from .spellings import strict
from .transport import CallOptions

AT_ONCE = 8
"""Number of files that are sent in parallel."""
PERMISSIONS = 0o777


@strict
class Files:
    """Files of a sandbox. Paths are absolute."""

    def __init__(self, client: Client, sandbox: SandboxName) -> None:
        """Files of a sandbox, by its names."""
        self._client = client
        self._sandbox = sandbox

    @blocking
    async def open(
        self, path: str, *, offset: int = 0, length: int | None = None, **options: Unpack[CallOptions]
    ) -> Download:
        """Streams a file, or `length` bytes of it from `offset`. Raises NotFoundError."""
        if length == 0:
            return Download(None)
        return await aio(self._client.download)("sandbox_file_get", ranged(options, offset, length), **self._at(path))

    @blocking
    async def read(
        self, path: str, *, offset: int = 0, length: int | None = None, **options: Unpack[CallOptions]
    ) -> bytes:
        """Reads a file, or `length` bytes of it from `offset`. Raises NotFoundError."""
        if length == 0:
            return b""
        return await aio(self._client.read)("sandbox_file_get", ranged(options, offset, length), **self._at(path))

    @blocking
    async def read_text(self, path: str, **options: Unpack[CallOptions]) -> str:
        """Reads a file as UTF-8 text. Raises NotFoundError."""
        return (await aio(self.read)(path, **options)).decode()

    @blocking
    async def write(
        self,
        path: str,
        data: FileBody,
        *,
        mode: str | None = None,
        owner: str | None = None,
        overwrite: bool | None = None,
        if_match: str | None = None,
        **options: Unpack[CallOptions],
    ) -> WrittenSandboxFile:
        """Writes a file atomically, and creates the directories above it.

        `mode` is in octal; `owner` is a user of the sandbox, user:group or uid:gid. By default those of the replaced
        file stay. With `overwrite=False` it fails if the file exists, with `if_match` unless the file has this ETag.
        """
        input = given(mode=mode, owner=owner, overwrite=overwrite)
        call = conditional(options, if_match)
        return await self._client._upload("sandbox_file_put", data, call, **self._at(path), **input)

    @blocking
    async def write_many(
        self,
        files: Mapping[str, FileBody],
        *,
        mode: str | None = None,
        owner: str | None = None,
        **options: Unpack[CallOptions],
    ) -> None:
        """Writes several files, by path, in parallel; some may be written if one fails."""
        write = partial(aio(self.write), mode=mode, owner=owner, **options)
        await self._client._network.each([partial(write, *each) for each in files.items()], AT_ONCE)

    @blocking
    async def upload(
        self, local: str | os.PathLike[str], path: str, **options: Unpack[CallOptions]
    ) -> WrittenSandboxFile:
        """Writes a local file to the sandbox."""
        return await aio(self.write)(path, Path(local), **options)

    @blocking
    async def upload_dir(
        self,
        local: str | os.PathLike[str],
        path: str,
        *,
        owner: str | None = None,
        **options: Unpack[CallOptions],
    ) -> None:
        """Copies the content of a local directory to one of the sandbox, with permissions. Symbolic links are left out."""
        await aio(self.mkdir)(path, owner=owner, **options)
        for entry in sorted(Path(local).iterdir()):
            to = f"{path.rstrip('/')}/{entry.name}"
            if entry.is_symlink():
                continue
            if entry.is_dir():
                await aio(self.upload_dir)(entry, to, owner=owner, **options)
            elif entry.is_file():
                mode = f"{entry.stat().st_mode & PERMISSIONS:04o}"
                await aio(self.write)(to, entry, mode=mode, owner=owner, **options)

    @blocking
    async def download_dir(self, path: str, local: str | os.PathLike[str], **options: Unpack[CallOptions]) -> None:
        """Copies the content of a directory to a local one, with permissions and symbolic links, without devices and pipes."""
        top = Path(local).resolve()
        top.mkdir(parents=True, exist_ok=True)
        above = len(path.rstrip("/")) + 1
        links: list[tuple[Path, str]] = []
        async for entry in aiter_of(self.list)(path, recursive=True, **options):
            place = Path(os.path.normpath(top / entry["path"][above:]))
            # The sandbox is untrusted and may report any name.
            if "path_b64" in entry or top not in place.parents:
                raise RoomdError(f"{entry['path']} has a name that is not UTF-8, or leads out of the target directory.")
            # An earlier copy may have created a link, which may lead anywhere.
            _refuse_links(top, place if entry["type"] == "directory" else place.parent)
            if entry["type"] == "directory":
                place.mkdir(parents=True, exist_ok=True)
            elif entry["type"] == "symlink":
                links.append((place, entry.get("target", "")))
            elif entry["type"] == "file":
                if place.is_symlink():
                    place.unlink()
                with await aio(self.open)(entry["path"], **options) as download, place.open("wb") as file:
                    await download._write_to(file)
                place.chmod(int(entry["mode"], 8) & PERMISSIONS)
        # Links are created last, so that nothing is written through one.
        for place, target in links:
            # The listing may contain a path behind one of these links.
            _refuse_links(top, place.parent)
            with suppress(FileNotFoundError):
                place.unlink()
            place.symlink_to(target)

    @iterating
    def list(
        self, path: str, *, recursive: bool | None = None, **options: Unpack[CallOptions]
    ) -> AsyncGenerator[SandboxFileEntry, None]:
        """Yields the entries of a directory, sorted by name; with `recursive` also those below on the same file system."""
        input = given(recursive=recursive)
        return aiter_of(self._client.items)("sandbox_file_list", options, **self._at(path), **input)

    @blocking
    async def stat(self, path: str, *, follow: bool = True, **options: Unpack[CallOptions]) -> SandboxFileEntry:
        """Describes an entry; with `follow=False` a symbolic link itself, not its target. Raises NotFoundError."""
        return await self._client._call("sandbox_file_stat", options, **self._at(path), follow=follow)

    @blocking
    async def exists(self, path: str, **options: Unpack[CallOptions]) -> bool:
        """Whether an entry exists; a dangling symbolic link counts."""
        try:
            await aio(self.stat)(path, follow=False, **options)
        except NotFoundError as error:
            if error.code != "path_not_found":
                raise
            return False
        return True

    @blocking
    async def mkdir(
        self, path: str, *, mode: str | None = None, owner: str | None = None, **options: Unpack[CallOptions]
    ) -> None:
        """Creates a directory and those above it; an existing one is no error."""
        await self._client._call("sandbox_file_mkdir", options, **self._at(path), **given(mode=mode, owner=owner))

    @blocking
    async def move(self, path: str, to: str, *, overwrite: bool | None = None, **options: Unpack[CallOptions]) -> None:
        """Moves or renames an entry; with `overwrite` it may replace a file."""
        input = given(overwrite=overwrite)
        await self._client._call("sandbox_file_move", options, **self._sandbox, from_=path, to=to, **input)

    @blocking
    async def remove(self, path: str, *, recursive: bool = False, **options: Unpack[CallOptions]) -> None:
        """Removes a file or an empty directory; with `recursive` also its content. Raises NotFoundError."""
        await self._client._call("sandbox_file_delete", options, **self._at(path), recursive=recursive)

    @blocking
    async def delete(self, path: str, *, recursive: bool = False, **options: Unpack[CallOptions]) -> bool:
        """As `remove`; returns False if the entry does not exist."""
        try:
            await aio(self.remove)(path, recursive=recursive, **options)
        except NotFoundError as error:
            if error.code != "path_not_found":
                raise
            return False
        return True

    @iterating
    async def watch(
        self, path: str, *, recursive: bool | None = None, **options: Unpack[CallOptions]
    ) -> AsyncGenerator[FileChanged, None]:
        """Yields changes of a file or directory, with `recursive` also below it, until the watched entry is removed."""
        input = given(recursive=recursive)
        watch = aiter_of(self._client.events)
        async with aclosing(watch("sandbox_file_watch", options, **self._at(path), **input)) as events:
            async for event in events:
                if event["type"] != "watching":
                    yield cast(FileChanged, event)

    def _at(self, path: str) -> dict[str, str]:
        if not path.startswith("/"):
            raise ValueError(f"{path} is not an absolute path, such as /root/{path}.")
        return {**self._sandbox, "path": path}


def _refuse_links(top: Path, path: Path) -> None:
    """Raises RoomdError if the path, or one between it and `top`, is a symbolic link: it may lead anywhere."""
    for each in (path, *path.parents):
        if each == top:
            return
        if each.is_symlink():
            raise RoomdError(f"{each} is a link: nothing is written through it.")
