"""Files of a sandbox: calls, and copies of directories in both directions, with a local directory as the sandbox."""

import os
import shutil
import tempfile
import unittest
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from roomd import NotFoundError, RoomdError
from roomd.client import Download
from roomd.coroutines import blocking, iterating
from roomd.files import Files


class Machine:
    """A client with a directory of this machine as its sandbox."""

    def __init__(self, directory: str) -> None:
        self.directory = Path(directory)
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.listed: list[dict[str, Any]] | None = None

    def at(self, path: str) -> Path:
        return self.directory / path[1:]

    async def _upload(self, name: str, body: Any, options: Any = None, /, **input: Any) -> Any:
        self.asked.append((name, input))
        place = self.at(input["path"])
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(body.read_bytes() if isinstance(body, Path) else body.encode())
        if "mode" in input:
            place.chmod(int(input["mode"], 8))
        return {"path": input["path"]}

    @blocking
    async def read(self, name: str, options: Any = None, /, **input: Any) -> bytes:
        self.asked.append((name, {**input, **(options or {}).get("headers", {})}))
        return self.at(input["path"]).read_bytes()

    @blocking
    async def download(self, name: str, options: Any = None, /, **input: Any) -> Any:
        data = self.read(name, options, **input)

        class Held(Download):
            async def _parts(self) -> AsyncGenerator[bytes, None]:
                yield data

        return Held(None)

    async def _call(self, name: str, options: Any = None, /, **input: Any) -> Any:
        self.asked.append((name, input))
        if name == "sandbox_file_mkdir":
            self.at(input["path"]).mkdir(parents=True, exist_ok=True)
        elif not os.path.lexists(self.at(input["path"])):
            raise missing()
        elif name == "sandbox_file_delete":
            self.at(input["path"]).unlink()
        return {}

    @iterating
    async def items(self, name: str, options: Any = None, /, **input: Any) -> AsyncGenerator[Any, None]:
        if self.listed is not None:
            for entry in self.listed:
                yield entry
            return
        for place in sorted(self.at(input["path"]).rglob("*")):
            entry = {"path": f"/{place.relative_to(self.directory)}", "mode": f"{place.lstat().st_mode & 0o777:04o}"}
            if place.is_symlink():
                yield {**entry, "type": "symlink", "target": str(place.readlink())}
            else:
                yield {**entry, "type": "directory" if place.is_dir() else "file"}


def missing() -> NotFoundError:
    problem: Any = {"code": "path_not_found", "detail": "There is none.", "hint": None}
    return NotFoundError(problem)


class FilesTest(unittest.TestCase):
    def setUp(self) -> None:
        self.top = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.top)
        (Path(self.top) / "sandbox").mkdir()
        self.machine = Machine(f"{self.top}/sandbox")
        client: Any = self.machine
        self.files = Files(client, {"room_id": "a", "sandbox": "b"})

    def test_a_write_is_one_call_with_the_given_options(self) -> None:
        self.files.write("/root/x", "told", owner="agent", overwrite=False)
        [(name, input)] = self.machine.asked
        self.assertEqual(name, "sandbox_file_put")
        self.assertEqual(
            input, {"room_id": "a", "sandbox": "b", "path": "/root/x", "owner": "agent", "overwrite": False}
        )
        self.assertEqual(self.files.read("/root/x", offset=1, length=2), b"told")
        self.assertEqual(self.machine.asked[-1][1]["Range"], "bytes=1-2")

    def test_a_missing_file_does_not_exist(self) -> None:
        self.assertFalse(self.files.exists("/none"))
        self.assertFalse(self.files.delete("/none"))
        with self.assertRaises(NotFoundError):
            self.files.remove("/none")
        self.files.write("/x", "told")
        self.assertTrue(self.files.exists("/x"))
        self.assertTrue(self.files.delete("/x"))

    def test_a_relative_path_is_rejected(self) -> None:
        with self.assertRaises(ValueError):
            self.files.read("x")
        self.assertEqual(self.machine.asked, [])

    def test_a_directory_is_copied_in_both_directions_with_modes(self) -> None:
        local = Path(self.top) / "local"
        (local / "sub" / "empty").mkdir(parents=True)
        (local / "run.sh").write_text("#!/bin/sh\n")
        (local / "run.sh").chmod(0o755)
        (local / "sub" / "data").write_text("1")
        self.files.upload_dir(local, "/work", owner="agent")
        (self.machine.directory / "work" / "link").symlink_to("sub/data")
        back = Path(self.top) / "back"
        self.files.download_dir("/work", back)
        self.assertEqual((back / "run.sh").stat().st_mode & 0o777, 0o755)
        self.assertEqual((back / "sub" / "data").read_text(), "1")
        self.assertTrue((back / "sub" / "empty").is_dir())
        self.assertEqual(os.readlink(back / "link"), "sub/data")
        self.assertTrue(all(input.get("owner") == "agent" for name, input in self.machine.asked if "put" in name))

    def test_a_listing_leads_neither_outside_nor_through_a_link(self) -> None:
        back = Path(self.top) / "back"
        self.machine.listed = [{"path": "/work/../../evil", "type": "directory", "mode": "0755"}]
        with self.assertRaises(RoomdError):
            self.files.download_dir("/work", back)
        self.assertFalse((Path(self.top) / "evil").exists())
        (self.machine.directory / "work" / "out").mkdir(parents=True)
        (self.machine.directory / "work" / "out" / "x").write_text("1")
        self.machine.listed = [
            {"path": "/work/out", "type": "symlink", "target": self.top, "mode": "0777"},
            {"path": "/work/out/x", "type": "file", "mode": "0644"},
        ]
        with self.assertRaises(OSError):
            self.files.download_dir("/work", back)
        self.assertFalse((Path(self.top) / "x").exists())

    def test_no_link_is_created_or_replaced_behind_a_link_of_the_same_copy(self) -> None:
        back, outside = Path(self.top) / "back", Path(self.top) / "outside"
        outside.mkdir()
        (outside / "authorized_keys").write_text("mine")
        (self.machine.directory / "work").mkdir(parents=True)
        self.machine.listed = [
            {"path": "/work/d", "type": "symlink", "target": str(outside), "mode": "0777"},
            {"path": "/work/d/authorized_keys", "type": "symlink", "target": "../back/theirs", "mode": "0777"},
        ]
        with self.assertRaises(RoomdError):
            self.files.download_dir("/work", back)
        self.assertEqual((outside / "authorized_keys").read_text(), "mine")
        self.assertFalse((outside / "authorized_keys").is_symlink())

    def test_nothing_is_written_through_a_link_of_an_earlier_copy(self) -> None:
        back, outside = Path(self.top) / "back", Path(self.top) / "outside"
        back.mkdir()
        outside.mkdir()
        (Path(self.top) / "secret").write_text("secret")
        (back / "d").symlink_to(outside)
        (back / "f").symlink_to("../secret")
        (self.machine.directory / "work" / "d").mkdir(parents=True)
        (self.machine.directory / "work" / "f").write_text("new")
        self.machine.listed = [{"path": "/work/f", "type": "file", "mode": "0644"}]
        self.files.download_dir("/work", back)
        self.assertEqual((back / "f").read_text(), "new")
        self.assertEqual((Path(self.top) / "secret").read_text(), "secret")
        self.machine.listed = [
            {"path": "/work/d", "type": "directory", "mode": "0755"},
            {"path": "/work/d/x", "type": "directory", "mode": "0755"},
        ]
        with self.assertRaises(RoomdError):
            self.files.download_dir("/work", back)
        self.assertEqual(list(outside.iterdir()), [])
