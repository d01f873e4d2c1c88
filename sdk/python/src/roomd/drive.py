"""The drive of a room: one directory that all its sandboxes mount at /mnt/drive."""

import base64
import os
import secrets
import shutil
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path
from typing import Unpack

from ._generated.schemas import DriveEntry, DriveStat, WrittenFile
from .client import Client, Download, given
from .coroutines import aio, aiter_of, blocking, iterating
from .headers import conditional, ranged
from .http1 import FileBody
from .spellings import strict
from .transport import CallOptions


@strict
class Drive:
    """The drive of a room. A missing file raises NotFoundError."""

    def __init__(self, client: Client, room: str) -> None:
        """The drive of a room, by its name."""
        self._client = client
        self._room = room

    @blocking
    async def write(
        self,
        path: str,
        data: FileBody,
        *,
        mode: str | None = None,
        overwrite: bool | None = None,
        if_match: str | None = None,
        **options: Unpack[CallOptions],
    ) -> WrittenFile:
        """Writes a file atomically, and creates the directories above it.

        `mode` is in octal, "0644" by default. With `overwrite=False` it fails if the file exists, with `if_match`
        unless the file has this ETag.
        """
        input = given(mode=mode, overwrite=overwrite)
        call = conditional(options, if_match)
        return await self._client._upload("file_put", data, call, room_id=self._room, path=path, **input)

    @blocking
    async def upload(
        self,
        local: str | os.PathLike[str],
        path: str,
        *,
        mode: str | None = None,
        overwrite: bool | None = None,
        if_match: str | None = None,
        **options: Unpack[CallOptions],
    ) -> WrittenFile:
        """Writes a local file to the drive."""
        return await aio(self.write)(path, Path(local), mode=mode, overwrite=overwrite, if_match=if_match, **options)

    @blocking
    async def append(self, path: str, data: str | bytes, **options: Unpack[CallOptions]) -> None:
        """Appends to a file, which is created if it does not exist."""
        content = base64.b64encode(data.encode() if isinstance(data, str) else data).decode()
        await self._client._call("fs_write", options, room_id=self._room, path=path, content_b64=content, append=True)

    @blocking
    async def open(
        self, path: str, *, offset: int = 0, length: int | None = None, **options: Unpack[CallOptions]
    ) -> Download:
        """Streams a file, or `length` bytes of it from `offset`."""
        if length == 0:
            return Download(None)
        return await aio(self._client.download)("file_get", ranged(options, offset, length), room_id=self._room, path=path)

    @blocking
    async def read(
        self, path: str, *, offset: int = 0, length: int | None = None, **options: Unpack[CallOptions]
    ) -> bytes:
        """Reads a file, or `length` bytes of it from `offset`; again if the connection breaks."""
        if length == 0:
            return b""
        return await aio(self._client.read)("file_get", ranged(options, offset, length), room_id=self._room, path=path)

    @blocking
    async def read_text(self, path: str, **options: Unpack[CallOptions]) -> str:
        """Reads a file as UTF-8 text."""
        return (await aio(self.read)(path, **options)).decode()

    @blocking
    async def download(self, path: str, local: str | os.PathLike[str], **options: Unpack[CallOptions]) -> None:
        """Writes a file of the drive to a local path, atomically."""
        target = Path(local).resolve()
        with await aio(self.open)(path, **options) as download:
            if target.exists() and not target.is_file():
                # A pipe, for example, cannot be replaced.
                with target.open("wb") as file:
                    await download._write_to(file)
                return
            part = target.with_name(f".roomd-{secrets.token_hex(8)}")
            try:
                # Created with the target's mode: other users of this machine get no additional read access.
                mode = target.stat().st_mode & 0o777 if target.exists() else 0o666
                descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
                with open(descriptor, "wb") as file:
                    await download._write_to(file)
                with suppress(FileNotFoundError):
                    shutil.copymode(target, part)
                part.replace(target)
            except BaseException:
                part.unlink(missing_ok=True)
                raise

    @blocking
    async def stat(self, path: str, **options: Unpack[CallOptions]) -> DriveStat:
        """Describes a file or directory."""
        return await self._client._call("fs_stat", options, room_id=self._room, path=path)

    @iterating
    def list(
        self, path: str | None = None, *, recursive: bool | None = None, **options: Unpack[CallOptions]
    ) -> AsyncGenerator[DriveEntry, None]:
        """Yields the entries of a directory; with `recursive` also those below it."""
        input = given(path=path, recursive=recursive)
        return aiter_of(self._client.items)("fs_list", options, room_id=self._room, **input)

    @blocking
    async def mkdir(self, path: str, **options: Unpack[CallOptions]) -> None:
        """Creates a directory and those above it."""
        await self._client._call("fs_mkdir", options, room_id=self._room, path=path)

    @blocking
    async def move(self, path: str, to: str, *, overwrite: bool | None = None, **options: Unpack[CallOptions]) -> None:
        """Moves or renames an entry; with `overwrite` it may replace a file."""
        input = given(overwrite=overwrite)
        await self._client._call("fs_move", options, room_id=self._room, from_=path, to=to, **input)

    @blocking
    async def delete(self, path: str, *, recursive: bool | None = None, **options: Unpack[CallOptions]) -> None:
        """Deletes a file, or with `recursive` a directory and its content."""
        input = given(recursive=recursive)
        await self._client._call("fs_delete", options, room_id=self._room, path=path, **input)
