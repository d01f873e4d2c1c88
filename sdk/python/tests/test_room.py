"""A room: its drive, messages, barriers and events."""

import os
import tempfile
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from roomd import (
    Cancel,
    Cancelled,
    ConflictError,
    NotFoundError,
    PreconditionError,
    ProblemError,
    Roomd,
    RoomdError,
    TimeoutError,
)


class OfRooms(unittest.TestCase):
    def setUp(self) -> None:
        self.roomd = Roomd()
        self.addCleanup(self.roomd.close)


class RoomTest(OfRooms):
    def test_is_created_found_listed_and_destroyed(self) -> None:
        with self.roomd.rooms.create(labels={"team": "search"}) as room:
            self.assertEqual(room.get()["labels"], {"team": "search"})
            self.assertIn(room.id, [each["room_id"] for each in self.roomd.rooms.list()])
        with self.assertRaises(NotFoundError):
            room.get()

    def test_yields_its_events(self) -> None:
        room = self.roomd.rooms.create("py-told")
        seen: list[str] = []
        ended = Cancel()

        def listen() -> None:
            with ended, self.assertRaises(Cancelled):
                for event in room.events(after=0):
                    seen.append(event["event"])

        listening = threading.Thread(target=listen)
        listening.start()
        room.drive.write("/x", "x")
        until(lambda: "drive.written" in seen)
        ended.cancel()
        listening.join(5)
        self.assertFalse(listening.is_alive())
        self.assertEqual([each for each in seen if each != "audit.followed"], ["room.created", "drive.written"])

    def test_yields_its_destruction_last(self) -> None:
        room = self.roomd.rooms.create("py-ended")
        with ThreadPoolExecutor() as threads:
            told = threads.submit(lambda: [event["event"] for event in room.events(after=0)])
            room.destroy()
            self.assertEqual(told.result(15)[-1], "room.destroyed")


class DriveTest(OfRooms):
    def test_files_are_written_and_read_whole_and_in_parts(self) -> None:
        drive = self.roomd.rooms.create("py-files").drive
        data = os.urandom(300_000)
        path = "/a/b c/ü#?%.bin"
        self.assertTrue(drive.write(path, data)["created"])
        self.assertEqual(drive.read(path), data)
        self.assertEqual(drive.read(path, offset=10, length=5), data[10:15])
        self.assertEqual(drive.read(path, offset=299_990), data[299_990:])
        self.assertEqual(drive.read(path, length=3), data[:3])
        with drive.open(path) as download:
            self.assertIn(download.size, (None, len(data)))
            self.assertEqual(b"".join(download), data)
            with self.assertRaises(RoomdError):
                download.read()
        drive.write("/parts.txt", (part for part in (b"one ", b"two ", b"three")))
        drive.append("/parts.txt", " ünd\n")
        self.assertEqual(drive.read_text("/parts.txt"), "one two three ünd\n")
        with drive.open("/parts.txt") as download:
            etag = download.etag or ""
        with self.assertRaises(PreconditionError):
            drive.write("/parts.txt", "other", if_match='"none"')
        drive.write("/parts.txt", "other", if_match=etag)
        with self.assertRaises(ProblemError) as refused:
            drive.write("/parts.txt", "again", overwrite=False)
        self.assertEqual(refused.exception.code, "already_exists")
        drive.move("/parts.txt", "/moved.txt")
        self.assertEqual(drive.stat("/moved.txt")["size_bytes"], 5)
        drive.mkdir("/empty")
        names = [each["path"] for each in drive.list(recursive=True)]
        self.assertEqual(sorted(names), ["/a", "/a/b c", path, "/empty", "/moved.txt"])
        drive.delete("/a", recursive=True)
        with self.assertRaises(ProblemError) as gone:
            drive.stat("/a")
        self.assertEqual(gone.exception.code, "path_not_found")

    def test_local_files_are_uploaded_and_downloaded(self) -> None:
        drive = self.roomd.rooms.create("py-local").drive
        with tempfile.TemporaryDirectory() as directory:
            one, two = Path(directory, "one"), Path(directory, "two")
            one.write_bytes(os.urandom(5_000_000))
            drive.upload(one, "/one")
            drive.download("/one", two)
            self.assertEqual(one.read_bytes(), two.read_bytes())
            with one.open("rb") as file:
                drive.write("/open", file)
            self.assertEqual(drive.stat("/open")["size_bytes"], 5_000_000)
            with self.assertRaises(FileNotFoundError):
                drive.upload(Path(directory, "none"), "/none")


class TalkTest(OfRooms):
    def test_messages_topics_and_requests_arrive(self) -> None:
        room = self.roomd.rooms.create("py-talk")
        planner, worker = room.agent("planner"), room.agent("worker")
        worker.subscribe(["build.*"])
        with ThreadPoolExecutor() as threads:
            heard = threads.submit(worker.wait, timeout_ms=10_000)
            planner.send("worker", {"do": "it"}, headers={"trace": "7"})
            message = heard.result()
            assert message is not None
            self.assertEqual((message["payload"], message["headers"]), ({"do": "it"}, {"trace": "7"}))
            planner.send({"topic": "build.done"}, "done")
            self.assertEqual((worker.wait() or {}).get("payload"), "done")
            reply = threads.submit(planner.request, "worker", {"question": 1})
            request = worker.wait()
            assert request is not None
            worker.reply(request, {"answer": 2})
            self.assertEqual(reply.result()["payload"], {"answer": 2})
        self.assertIsNone(worker.wait(timeout_ms=0))
        with self.assertRaises(TimeoutError):
            planner.request("worker", "?", timeout_ms=50)
        room.send(["planner", "worker"], "to both")
        self.assertEqual((next(iter(worker.messages(source="operator"))))["payload"], "to both")

    def test_a_batch_of_messages_is_sent_all_or_none(self) -> None:
        room = self.roomd.rooms.create("py-batch")
        planner, worker = room.agent("planner"), room.agent("worker")
        worker.subscribe(["build.*"])
        sent = planner.send_many([
            {"destination": "worker", "payload": 1, "message_id": "first", "headers": {"trace": "7"}},
            {"destination": {"topic": "build.done"}, "payload": 2},
            {"destination": ["worker", "planner"], "payload": 3},
        ])
        self.assertEqual(([len(each["deliveries"]) for each in sent], sent[0]["message_id"]), ([1, 1, 2], "first"))
        heard = [worker.wait() or {} for _ in sent]
        self.assertEqual([each.get("payload") for each in heard], [1, 2, 3])
        with self.assertRaises(ConflictError):
            planner.send_many([
                {"destination": "worker", "payload": 4},
                {"destination": "worker", "payload": 5, "message_id": "first"},
            ])
        self.assertIsNone(worker.wait(timeout_ms=0))
        room.send_many([{"destination": "worker", "payload": "all"}])
        self.assertEqual((worker.wait() or {}).get("source"), "operator")

    def test_a_batch_with_one_key_is_sent_once_across_processes(self) -> None:
        room = self.roomd.rooms.create("py-batch-once")
        room.agent("worker").subscribe([])
        sent = []
        for _ in range(2):
            with Roomd() as other:
                agent = other.rooms.open(room.id).agent("planner")
                sent.append(agent.send_many([{"destination": "worker", "payload": 1}] * 2, idempotency_key="py-batch"))
        self.assertEqual(sent[0], sent[1])
        heard = [room.agent("worker").wait(timeout_ms=0) for _ in range(3)]
        self.assertEqual([message and message["payload"] for message in heard], [1, 1, None])

    def test_a_barrier_releases_all_agents_in_every_generation(self) -> None:
        room = self.roomd.rooms.create("py-together")
        agents = [room.agent(name) for name in "abc"]
        for generation in (1, 2, 3):
            with ThreadPoolExecutor() as threads:
                passed = list(threads.map(lambda agent: agent.barrier("step", parties=3), agents))
            self.assertEqual({(each["state"], each["generation"]) for each in passed}, {("released", generation)})
        with self.assertRaises(TimeoutError):
            agents[0].barrier("never", participants=["a", "b"], timeout_ms=100)

    def test_many_agents_wait_concurrently_and_each_gets_its_message(self) -> None:
        room = self.roomd.rooms.create("py-many")
        names = [f"agent-{index}" for index in range(40)]
        for name in names:
            room.agent(name).subscribe([])
        with ThreadPoolExecutor(len(names)) as threads:
            heard = [threads.submit(room.agent(name).wait, timeout_ms=20_000) for name in names]
            for name in names:
                room.send(name, name)
            self.assertEqual([(each.result() or {}).get("payload") for each in heard], names)


class CancelTest(OfRooms):
    def test_aborts_a_waiting_call_and_nothing_else(self) -> None:
        agent = self.roomd.rooms.create("py-cancel").agent("a")
        agent.subscribe([])
        cancel = Cancel()
        started = time.monotonic()
        threading.Timer(0.3, cancel.cancel).start()
        with cancel, self.assertRaises(Cancelled):
            agent.wait()
        self.assertLess(time.monotonic() - started, 5)
        with cancel, self.assertRaises(Cancelled):
            agent.wait(timeout_ms=0)
        self.assertIsNone(agent.wait(timeout_ms=0))


def until(probe, seconds: float = 15) -> None:
    deadline = time.monotonic() + seconds
    while not probe():
        if time.monotonic() > deadline:
            raise AssertionError(f"condition not met after {seconds} s")
        time.sleep(0.01)
