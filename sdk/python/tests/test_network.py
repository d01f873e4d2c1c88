"""A failing network: calls take effect once, and events arrive once."""

import asyncio
import json
import os
import tempfile
import threading
import unittest
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from roomd import AsyncRoomd, ConnectionError

from .surroundings import PROXY, asked, happens, restart, shaken


class NetworkTest(unittest.TestCase):
    def setUp(self) -> None:
        happens(0, None)
        self.roomd = shaken()
        self.addCleanup(self.roomd.close)
        self.addCleanup(happens, 0, None)

    def test_a_room_is_created_once_despite_faults(self) -> None:
        for fault in ("refused", "answer_lost"):
            with self.subTest(fault):
                happens(2, fault)
                room = self.roomd.rooms.create(f"py-once-{fault.replace('_', '-')}")
                sent = asked()
                self.assertEqual([each["method"] for each in sent], ["POST"] * 3)
                self.assertEqual(len({each["idempotencyKey"] for each in sent}), 1)
                created = self.roomd.client.call("audit_list", room_id=room.id, event="room.created")
                self.assertEqual(len(created["items"]), 1)

    def test_an_interrupted_download_keeps_the_previous_file(self) -> None:
        drive = self.roomd.rooms.create("py-cut-download").drive
        drive.write("/x", "12345")
        with tempfile.TemporaryDirectory() as directory:
            local = Path(directory, "x")
            local.write_text("old")
            local.chmod(0o640)
            happens(1, {"cutAfterBytes": 3})
            with self.assertRaises(ConnectionError):
                drive.download("/x", local)
            self.assertEqual((local.read_text(), os.listdir(directory)), ("old", ["x"]))
            drive.download("/x", local)
            self.assertEqual((local.read_text(), os.listdir(directory)), ("12345", ["x"]))
            self.assertEqual(local.stat().st_mode & 0o777, 0o640)

    def test_a_stream_that_breaks_at_any_byte_is_resumed(self) -> None:
        room = self.roomd.rooms.create("py-cut")
        for index in range(4):
            room.drive.write(f"/{index}", "x")
        address = f"{PROXY}/v1/rooms/py-cut/events?after=0&follow=false"
        headers = {"Authorization": f"Bearer {os.environ['ROOMD_API_KEY']}", "Accept": "application/x-ndjson"}
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers)) as answer:
            whole = answer.read()
        expected = [json.loads(line)["seq"] for line in whole.splitlines()]
        self.assertGreater(len(expected), 4)
        for at in range(0, len(whole), 97):
            happens(1, {"cutAfterBytes": at})
            events = self.roomd.client.events("room_events", room_id="py-cut", after=0, follow=False)
            seqs = [event["seq"] for event in events]
            self.assertEqual(seqs[: len(expected)], expected, f"cut after {at} bytes")


class KilledDaemonTest(unittest.TestCase):
    """It restarts on another port: only the proxy finds it."""

    def test_is_awaited(self) -> None:
        with shaken() as roomd, ThreadPoolExecutor() as threads:
            room = roomd.rooms.create("py-back")
            agent = room.agent("a")
            agent.subscribe([])
            heard = threads.submit(agent.wait)
            parties = [threads.submit(room.agent(name).barrier, "again", parties=3) for name in "bc"]
            seen: list[str] = []
            listening = threading.Thread(target=lambda: _listen(room, seen))
            listening.start()
            restart()
            room.send("a", "still there")
            message = heard.result()
            assert message is not None
            self.assertEqual(message["payload"], "still there")
            self.assertEqual(agent.barrier("again", parties=3)["state"], "released")
            self.assertEqual({each.result()["generation"] for each in parties}, {1})
            room.drive.write("/last", "x")
            listening.join(20)
            self.assertFalse(listening.is_alive())
            self.assertEqual(seen.count("room.created"), 1, seen)


class AsyncNetworkTest(unittest.IsolatedAsyncioTestCase):
    async def test_a_call_with_lost_answers_takes_effect_once(self) -> None:
        self.addCleanup(happens, 0, None)
        async with AsyncRoomd(url=PROXY) as roomd:
            happens(2, "answer_lost")
            room = await roomd.rooms.create("aio-once")
            self.assertEqual(len({each["idempotencyKey"] for each in asked()}), 1)
            waits = [asyncio.create_task(room.agent(name).barrier("again", parties=3)) for name in "ab"]
            await asyncio.sleep(0.2)
            await asyncio.to_thread(restart)
            waits.append(asyncio.create_task(room.agent("c").barrier("again", parties=3)))
            self.assertEqual({each["state"] for each in await asyncio.gather(*waits)}, {"released"})


def _listen(room, seen: list[str]) -> None:
    events = room.events(after=0)
    for event in events:
        seen.append(event["event"])
        if event["event"] == "drive.written":
            break
    events.close()
