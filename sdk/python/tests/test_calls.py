"""Errors before a request, methods with several calls, and lost answers."""

import asyncio
import json
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from roomd import (
    AsyncRoomd,
    Client,
    ConnectionError,
    InvalidRequestError,
    NotFoundError,
    Roomd,
    RoomdError,
    Sandbox,
    TimeoutError,
)
from roomd.agent import Outgoing
from roomd.coroutines import run
from roomd.drive import Drive
from roomd.room import Room
from roomd.service import Rooms

from .scripted import BROKEN, ROOM, RUNNING, Reply, ScriptedService, lines, ok, problem, sandbox

GONE = problem(404, "room_not_found", False)


class BeforeItIsSentTest(ScriptedService):
    def test_a_path_with_dot_segments_is_rejected(self) -> None:
        drive = Drive(self.client, "a")
        for path in ("..", ".", "/../../rooms", "a/../b", "/a/.", "./a"):
            for act in (drive.read, lambda path: drive.write(path, b"x")):
                with self.assertRaises(RoomdError):
                    act(path)
        for name in ("..", "."):
            with self.assertRaises(RoomdError):
                self.client.call("room_get", room_id=name)
            with self.assertRaises(RoomdError):
                list(self.client.events("execution_stream", room_id="a", sandbox=name, exec_id="c"))
        self.assertEqual(self.asked, [])
        self.replies = [ok({})] * 3
        for path in ("..a", "a..", "%2e%2e"):
            drive.read(path)
        self.assertEqual(self.asked[2][0], "/below/v1/rooms/a/drive/files/%252e%252e")

    def test_an_api_key_with_invalid_characters_is_rejected_but_not_printed(self) -> None:
        for key in ("a\nb", "a b", "schlüssel", "a\x00"):
            with self.assertRaises(RoomdError) as refused:
                Client(self.client.url, key)
            self.assertNotIn(key, str(refused.exception))
        self.replies = [ok(ROOM)]
        with Roomd(self.client.url, " key-1\n") as roomd:
            roomd.client.call("room_get", room_id="a")
        self.assertEqual(self.asked[0][1]["Authorization"], "Bearer key-1")

    def test_an_invalid_url_is_rejected(self) -> None:
        for url in ("http://a b", "http://a/b\nc", "http://a:99999", "ftp://a"):
            with self.assertRaises(RoomdError):
                Client(url)

    def test_an_invalid_header_raises_before_the_request(self) -> None:
        for options in ({"headers": {"X": "a\nb"}}, {"headers": {"a b": "x"}}, {"idempotency_key": "a\r\nb"}):
            with self.assertRaises(RoomdError):
                self.client.call("room_create", options, room_id="a")
        self.assertEqual(self.asked, [])

    def test_any_timeout_is_accepted(self) -> None:
        self.replies = [ok(ROOM)] * 2
        for timeout_ms in (float("inf"), 1e18):
            self.client.call("room_get", {"timeout_ms": timeout_ms}, room_id="a")
        self.replies = [ok({"items": [{"payload": 1}], "next_after": 1})]
        message = Room(self.client, "a").agent("b").wait(timeout_ms=float("inf"))
        self.assertEqual((message or {}).get("payload"), 1)
        self.replies = [ok({"reply": {"payload": 2}})]
        reply = Room(self.client, "a").agent("b").request("c", "?", timeout_ms=float("inf"))
        self.assertEqual(reply["payload"], 2)
        self.replies = [ok({"state": "released", "generation": 1})]
        Room(self.client, "a").agent("b").barrier("c", timeout_ms=float("inf"))


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


class RedirectTest(ScriptedService):
    def test_is_reported_with_its_target_and_not_followed(self) -> None:
        self.replies = [(308, {"Location": "https://elsewhere.example/v1"}, "")]
        with self.assertRaises(ConnectionError) as led:
            self.client.call("room_get", room_id="a")
        self.assertIn("https://elsewhere.example/v1", str(led.exception))
        self.assertEqual(len(self.asked), 1)


class EventsTest(ScriptedService):
    def test_from_now_on_are_complete_if_the_connection_breaks_before_the_first(self) -> None:
        end = {"event": "room.destroyed", "outcome": "success", "seq": 9}
        self.replies = [ok({"items": [{"seq": 7}], "next_cursor": None}), lines(), lines(end)]
        self.assertEqual([event["seq"] for event in Room(self.client, "a").events()], [9])
        self.assertEqual([path.partition("?")[2] for path, _, _ in self.asked[-2:]], ["after=7", "after=7"])


class EndingTest(ScriptedService):
    def test_not_found_after_an_interrupted_attempt_is_success(self) -> None:
        self.replies = [BROKEN, GONE]
        Room(self.client, "a").destroy()
        self.replies = [BROKEN, problem(502, "unavailable", True, **{"Retry-After": "0"}), GONE]
        Sandbox(self.client, "a", "b").destroy()
        self.replies = [(504, {"Content-Type": "text/html", "Retry-After": "0"}, ""), GONE]
        Room(self.client, "a").destroy()
        self.assertEqual(self.methods, ["DELETE"] * 7)

    def test_not_found_after_rejected_attempts_is_raised(self) -> None:
        refused: list[Reply] = [
            problem(429, "rate_limited", True, **{"Retry-After": "0"}),
            problem(503, "not_ready", True, **{"Retry-After": "0"}),
            (503, {"Content-Type": "text/html", "Retry-After": "0"}, ""),
        ]
        for replies in ([GONE], *([each, GONE] for each in refused)):
            self.replies = [*replies]
            with self.assertRaises(NotFoundError):
                self.client.call("room_destroy", None, room_id="a")
            self.replies = [*replies]
            # destroy() accepts a missing room.
            Room(self.client, "a").destroy()
        self.replies = [BROKEN, GONE]
        with self.assertRaises(NotFoundError):
            Room(self.client, "a").get()

    def test_not_found_after_a_refused_connection_is_raised(self) -> None:
        self.replies = [GONE]
        connect = [ConnectionRefusedError("refused"), run(self.client._transport._new_wire(10))]
        with (
            mock.patch.object(self.client._transport, "_new_wire", side_effect=connect),
            self.assertRaises(NotFoundError),
        ):
            self.client.call("room_destroy", None, room_id="a")
        self.assertEqual(self.methods, ["DELETE"])

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


class SeveralCallsTest(ScriptedService):
    def test_each_has_a_separate_key_that_a_repetition_reuses(self) -> None:
        for _ in range(2):
            self.replies = [ok(sandbox("starting")), ok(RUNNING)]
            Room(self.client, "a").create_sandbox("b", idempotency_key="mine")
        keys = [headers.get("Idempotency-Key") for _, headers, _ in self.asked]
        self.assertEqual(keys, ["mine-1", None] * 2)
        self.assertEqual(self.asked[0][2], self.asked[2][2])

    def test_generated_names_are_the_same_for_the_same_key(self) -> None:
        self.replies = [ok(ROOM)] * 2 + [ok({})] * 2 + [ok({"messages": []})] * 3
        for _ in range(2):
            Rooms(self.client).create(idempotency_key="mine")
        for _ in range(2):
            Sandbox(self.client, "a", "b").start("true", idempotency_key="mine")
        for key in ("mine", "mine", "other"):
            many: list[Outgoing] = [{"destination": "c", "payload": 1}, {"destination": "c", "payload": 1}]
            Room(self.client, "a").send_many([*many, {**many[0], "message_id": "own"}], idempotency_key=key)
        bodies = [body for _, _, body in self.asked]
        self.assertEqual((bodies[0], bodies[2], bodies[4]), (bodies[1], bodies[3], bodies[5]))
        names = [each["message_id"] for body in bodies[5:] for each in json.loads(body)["messages"]]
        self.assertEqual((len(set(names)), names.count("own")), (5, 2))

    def test_all_share_one_timeout(self) -> None:
        slow = problem(503, "not_ready", True, **{"Retry-After": "1"})
        self.replies = [slow] * 9
        started = time.monotonic()
        with self.assertRaises(RoomdError):
            Room(self.client, "a").create_sandbox("b", timeout_ms=1500)
        self.assertLess(time.monotonic() - started, 2)


class SlowStartTest(ScriptedService):
    def setUp(self) -> None:
        super().setUp()
        self.enterContext(mock.patch("roomd.sandbox.STARTING_PAUSE_SECONDS", 0.01))

    def create(self, *states: str, **options: Any) -> None:
        self.replies = [*(ok(sandbox(state)) for state in states), *self.replies]
        Room(self.client, "a").create_sandbox("b", memory_mib=256, **options)

    def test_is_awaited(self) -> None:
        self.create("creating", "starting", "starting", "running")
        self.assertEqual(self.methods, ["POST", "GET", "GET", "GET"])
        self.assertEqual(self.asked[-1][0], "/below/v1/rooms/a/sandboxes/sbx_1?wait_ms=50000")
        self.asked.clear()
        self.create("starting", "running", timeout_ms=20_000)
        self.assertLessEqual(int(self.asked[-1][0].partition("=")[2]), 20_000)

    def test_that_fails_raises(self) -> None:
        for state in ("failed", "destroyed"):
            with self.assertRaises(RoomdError) as failed:
                self.create("starting", state)
            self.assertIn("No space left.", str(failed.exception))
        self.replies = [problem(404, "sandbox_not_found", False)]
        with self.assertRaises(NotFoundError):
            self.create("starting")

    def test_is_awaited_within_the_timeout(self) -> None:
        with self.assertRaises(TimeoutError):
            self.create(*["starting"] * 1000, timeout_ms=300)

    def test_is_awaited_by_asyncio(self) -> None:
        async def run() -> None:
            async with AsyncRoomd(self.client.url) as roomd:
                await roomd.rooms.open("a").create_sandbox("b", memory_mib=256)

        self.replies = [ok(sandbox("starting")), ok(RUNNING)]
        asyncio.run(run())
        self.assertEqual(self.methods, ["POST", "GET"])


class OwnRoomTest(ScriptedService):
    def test_lives_an_hour_longer_than_its_sandbox(self) -> None:
        for lasting, ttl in ((60, 86_400), (100_000, 103_600), (31_536_000, 31_536_000), (None, 86_400)):
            self.asked.clear()
            self.replies = [ok(ROOM), ok(RUNNING), ok({})]
            options: Any = {} if lasting is None else {"max_duration_seconds": lasting}
            with Sandbox.create(url=self.client.url, api_key="key-1", **options):
                pass
            self.assertEqual(self.sent()[0].get("ttl_seconds"), ttl)
            self.assertEqual(self.sent()[1].get("max_duration_seconds"), lasting)

    def test_is_destroyed_if_its_sandbox_fails(self) -> None:
        wrong = problem(422, "validation_failed", False)
        self.replies = [ok(ROOM), wrong, ok({})]
        with self.assertRaises(InvalidRequestError):
            Sandbox.create(url=self.client.url, api_key="key-1")
        self.assertEqual(self.methods[-1], "DELETE")
        self.methods.clear()
        self.replies = [wrong]
        with self.assertRaises(InvalidRequestError):
            Sandbox.create(url=self.client.url, api_key="key-1")
        self.assertEqual(self.methods, ["POST"])


class PartsTest(ScriptedService):
    def test_an_empty_range_is_read_without_a_call(self) -> None:
        drive = Drive(self.client, "a")
        self.assertEqual(drive.read("x", length=0), b"")
        with drive.open("x", offset=5, length=0) as download:
            self.assertEqual((download.size, download.read()), (0, b""))
        self.assertEqual(self.asked, [])

    def test_the_timeout_covers_all_attempts_to_read_a_file(self) -> None:
        half = (200, {"Content-Type": "application/octet-stream", "Content-Length": "99"}, "x")
        self.replies = [half] * 9
        started = time.monotonic()
        with self.assertRaises(TimeoutError):
            Drive(self.client, "a").read("x", timeout_ms=500)
        self.assertLess(time.monotonic() - started, 2)
