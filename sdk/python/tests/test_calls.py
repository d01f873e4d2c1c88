"""Bodies, `with` blocks, batches, empty ranges and lists, against a scripted service."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from roomd import RoomdError, Sandbox
from roomd.agent import Outgoing
from roomd.drive import Drive
from roomd.room import Room
from roomd.service import Rooms

from .scripted import ROOM, ScriptedService, ok, problem

GONE = problem(404, "room_not_found", False)


class BodyTest(ScriptedService):
    def test_an_exception_of_the_source_is_raised_unchanged(self) -> None:
        for error in (OSError("of the source"), BrokenPipeError("of the source"), ValueError("of the source")):

            def source(error: Exception = error) -> Iterator[bytes]:
                yield b"one"
                raise error

            self.replies = [ok({})]
            with self.assertRaises(type(error)) as raised:
                self.client.upload("file_put", source(), room_id="a", path="x")
            self.assertIs(raised.exception, error)

    def test_a_growing_file_is_sent_at_its_initial_length(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory, "x")
            file.write_bytes(b"12345")
            real = os.fstat

            def grows(number: int) -> os.stat_result:
                told = real(number)
                with file.open("ab") as more:
                    more.write(b"678")
                return told

            self.replies = [ok({"path": "x"})]
            with mock.patch("roomd.http1.os.fstat", grows):
                self.client.upload("file_put", file, room_id="a", path="x")
            self.assertEqual(self.asked[0][2], b"12345")


class EndingTest(ScriptedService):
    def test_with_accepts_a_resource_that_has_already_ended(self) -> None:
        self.replies = [ok(ROOM), GONE]
        with Rooms(self.client).create("a"):
            pass
        self.replies = [problem(409, "room_destroying", False)]
        with Room(self.client, "a", is_own=True):
            pass
        self.replies = [problem(404, "sandbox_not_found", False)]
        with Sandbox(self.client, "a", "b"):
            pass
        self.replies = [problem(403, "scope_missing", False)]
        with self.assertRaises(RoomdError), Sandbox(self.client, "a", "b"):
            pass

    def test_an_opened_room_is_not_destroyed(self) -> None:
        with Rooms(self.client).open("a"):
            pass
        self.assertEqual(self.asked, [])


class SeveralMessagesTest(ScriptedService):
    def test_a_given_message_id_is_kept_beside_those_of_the_key(self) -> None:
        self.replies = [ok({"messages": []})]
        many: list[Outgoing] = [{"destination": "c", "payload": 1}, {"destination": "c", "payload": 1, "message_id": "own"}]
        Room(self.client, "a").send_many(many, idempotency_key="mine")
        names = [each["message_id"] for each in self.sent()[0]["messages"]]
        self.assertEqual((len(set(names)), names[1]), (2, "own"))


class PartsTest(ScriptedService):
    def test_an_empty_range_is_read_without_a_call(self) -> None:
        drive = Drive(self.client, "a")
        self.assertEqual(drive.read("x", length=0), b"")
        with drive.open("x", offset=5, length=0) as download:
            self.assertEqual((download.size, download.read()), (0, b""))
        self.assertEqual(self.asked, [])


class ListTest(ScriptedService):
    def test_sandboxes_are_listed_over_all_rooms(self) -> None:
        self.replies = [ok({"items": [{"sandbox_id": "sbx_1"}], "next_cursor": None})]
        found = list(Sandbox.list(label=("team", "a"), url=self.client.url, api_key="key-1"))
        self.assertEqual([each["sandbox_id"] for each in found], ["sbx_1"])
        self.assertTrue(self.asked[0][0].endswith("?label=team%3Aa"))
