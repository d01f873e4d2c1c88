"""Files as a sandbox sees them: its disk and its mounts, served by the guest's agent in any image.

Files for several agents belong on the drive of the room, which is mounted at /mnt/drive.
"""

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Unpack, cast

from ._generated.schemas import FileChanged, SandboxFileEntry, WrittenSandboxFile
from .client import Client, Download, given
from .errors import NotFoundError, RoomdError
from .execution import SandboxName
from .headers import conditional, ranged
from .spellings import strict
from .transport import CallOptions, FileBody

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

    def open(
        self, path: str, *, offset: int = 0, length: int | None = None, **options: Unpack[CallOptions]
    ) -> Download:
        """Streams a file, or `length` bytes of it from `offset`. Raises NotFoundError."""
        if length == 0:
            return Download(None)
        return self._client.download("sandbox_file_get", ranged(options, offset, length), **self._at(path))

    def read(
        self, path: str, *, offset: int = 0, length: int | None = None, **options: Unpack[CallOptions]
    ) -> bytes:
        """Reads a file, or `length` bytes of it from `offset`. Raises NotFoundError."""
        if length == 0:
            return b""
        return self._client.read("sandbox_file_get", ranged(options, offset, length), **self._at(path))

    def read_text(self, path: str, **options: Unpack[CallOptions]) -> str:
        """Reads a file as UTF-8 text. Raises NotFoundError."""
        return self.read(path, **options).decode()

    def write(
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
        return self._client.upload("sandbox_file_put", data, call, **self._at(path), **input)

    def write_many(
        self,
        files: Mapping[str, FileBody],
        *,
        mode: str | None = None,
        owner: str | None = None,
        **options: Unpack[CallOptions],
    ) -> None:
        """Writes several files, by path, in parallel; some may be written if one fails."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for _ in pool.map(lambda each: self.write(*each, mode=mode, owner=owner, **options), files.items()):
                pass

    def upload(self, local: str | os.PathLike[str], path: str, **options: Unpack[CallOptions]) -> WrittenSandboxFile:
        """Writes a local file to the sandbox."""
        return self.write(path, Path(local), **options)

    def upload_dir(
        self,
        local: str | os.PathLike[str],
        path: str,
        *,
        owner: str | None = None,
        **options: Unpack[CallOptions],
    ) -> None:
        """Copies the content of a local directory to one of the sandbox, with permissions. Symbolic links are left out."""
        self.mkdir(path, owner=owner, **options)
        for entry in sorted(Path(local).iterdir()):
            to = f"{path.rstrip('/')}/{entry.name}"
            if entry.is_symlink():
                continue
            if entry.is_dir():
                self.upload_dir(entry, to, owner=owner, **options)
            elif entry.is_file():
                mode = f"{entry.stat().st_mode & PERMISSIONS:04o}"
                self.write(to, entry, mode=mode, owner=owner, **options)

    def download_dir(self, path: str, local: str | os.PathLike[str], **options: Unpack[CallOptions]) -> None:
        """Copies the content of a directory to a local one, with permissions and symbolic links, without devices and pipes."""
        top = Path(local).resolve()
        top.mkdir(parents=True, exist_ok=True)
        above = len(path.rstrip("/")) + 1
        links: list[tuple[Path, str]] = []
        for entry in self.list(path, recursive=True, **options):
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
                with self.open(entry["path"], **options) as download, place.open("wb") as file:
                    file.writelines(download)
                place.chmod(int(entry["mode"], 8) & PERMISSIONS)
        # Links are created last, so that nothing is written through one.
        for place, target in links:
            # The listing may contain a path behind one of these links.
            _refuse_links(top, place.parent)
            with suppress(FileNotFoundError):
                place.unlink()
            place.symlink_to(target)

    def list(
        self, path: str, *, recursive: bool | None = None, **options: Unpack[CallOptions]
    ) -> Iterator[SandboxFileEntry]:
        """Yields the entries of a directory, sorted by name; with `recursive` also those below on the same file system."""
        input = given(recursive=recursive)
        return self._client.items("sandbox_file_list", options, **self._at(path), **input)

    def stat(self, path: str, *, follow: bool = True, **options: Unpack[CallOptions]) -> SandboxFileEntry:
        """Describes an entry; with `follow=False` a symbolic link itself, not its target. Raises NotFoundError."""
        return self._client.call("sandbox_file_stat", options, **self._at(path), follow=follow)

    def exists(self, path: str, **options: Unpack[CallOptions]) -> bool:
        """Whether an entry exists; a dangling symbolic link counts."""
        try:
            self.stat(path, follow=False, **options)
        except NotFoundError as error:
            if error.code != "path_not_found":
                raise
            return False
        return True

    def mkdir(
        self, path: str, *, mode: str | None = None, owner: str | None = None, **options: Unpack[CallOptions]
    ) -> None:
        """Creates a directory and those above it; an existing one is no error."""
        self._client.call("sandbox_file_mkdir", options, **self._at(path), **given(mode=mode, owner=owner))

    def move(self, path: str, to: str, *, overwrite: bool | None = None, **options: Unpack[CallOptions]) -> None:
        """Moves or renames an entry; with `overwrite` it may replace a file."""
        input = given(overwrite=overwrite)
        self._client.call("sandbox_file_move", options, **self._sandbox, from_=path, to=to, **input)

    def remove(self, path: str, *, recursive: bool = False, **options: Unpack[CallOptions]) -> None:
        """Removes a file or an empty directory; with `recursive` also its content. Raises NotFoundError."""
        self._client.call("sandbox_file_delete", options, **self._at(path), recursive=recursive)

    def delete(self, path: str, *, recursive: bool = False, **options: Unpack[CallOptions]) -> bool:
        """As `remove`; returns False if the entry does not exist."""
        try:
            self.remove(path, recursive=recursive, **options)
        except NotFoundError as error:
            if error.code != "path_not_found":
                raise
            return False
        return True

    def watch(
        self, path: str, *, recursive: bool | None = None, **options: Unpack[CallOptions]
    ) -> Iterator[FileChanged]:
        """Yields changes of a file or directory, with `recursive` also below it, until the watched entry is removed."""
        input = given(recursive=recursive)
        for event in self._client.events("sandbox_file_watch", options, **self._at(path), **input):
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
