"""Waits at an inbox: one at a time, and none loses a message."""

import asyncio
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

from roomd import AsyncRoomd, Cancel, Cancelled, Roomd
from roomd.room import Room

from .scripted import ScriptedService


class PlaceTest(ScriptedService):
    def test_is_kept_by_the_room(self) -> None:
        room = Room(self.client, "a")
        self.assertIs(room.agent("b"), room.agent("b"))
        self.assertIs(room.sandbox("b").agent, room.agent("b"))
        self.assertIsNot(room.agent("b"), room.agent("c"))


class WaitsTest(unittest.TestCase):
    def setUp(self) -> None:
        self.roomd = Roomd()
        self.addCleanup(self.roomd.close)

    def test_with_a_filter_lose_no_message(self) -> None:
        with self.roomd.rooms.create() as room:
            agent = room.agent("a")
            agent.subscribe([])
            for number in range(3):
                room.agent(f"from-{number}").send("a", number)
            self.assertEqual((agent.wait(source="from-2") or {}).get("payload"), 2)
            seen = [message["payload"] for _ in range(3) if (message := agent.wait(timeout_ms=0))]
            self.assertEqual(seen, [0, 1, 2])
            self.assertIsNone(agent.wait(timeout_ms=0))
            self.assertIsNone(agent.wait(timeout_ms=0, source="from-2"))

    def test_that_are_concurrent_get_a_message_each(self) -> None:
        with self.roomd.rooms.create() as room, ThreadPoolExecutor() as threads:
            room.agent("a").subscribe([])
            waits = [threads.submit(room.agent("a").wait, timeout_ms=20_000) for _ in range(4)]
            for number in range(4):
                room.send("a", number)
            self.assertEqual(sorted((each.result() or {})["payload"] for each in waits), [0, 1, 2, 3])

    def test_behind_another_time_out_and_can_be_cancelled(self) -> None:
        with self.roomd.rooms.create() as room:
            agent, cancel, first = room.agent("a"), Cancel(), Cancel()
            agent.subscribe([])

            def wait() -> None:
                with first, self.assertRaises(Cancelled):
                    agent.wait()

            waiting = threading.Thread(target=wait)
            waiting.start()
            time.sleep(0.3)
            started = time.monotonic()
            self.assertIsNone(agent.wait(timeout_ms=200))
            threading.Timer(0.2, cancel.cancel).start()
            with cancel, self.assertRaises(Cancelled):
                agent.wait()
            self.assertLess(time.monotonic() - started, 3)
            first.cancel()
            waiting.join(10)
            self.assertFalse(waiting.is_alive())


class AsyncWaitsTest(unittest.IsolatedAsyncioTestCase):
    async def test_that_are_concurrent_get_a_message_each(self) -> None:
        async with AsyncRoomd() as roomd, await roomd.rooms.create() as room:
            await room.agent("a").subscribe([])
            self.assertIs(room.agent("a"), room.agent("a"))
            self.assertIs(room.sandbox("a").agent, room.agent("a"))
            waits = [asyncio.create_task(room.agent("a").wait(timeout_ms=20_000)) for _ in range(4)]
            last = asyncio.create_task(room.agent("a").wait())
            await asyncio.sleep(0.2)
            self.assertIsNone(await room.agent("a").wait(timeout_ms=100))
            for number in range(4):
                await room.send("a", number)
            got = [(each or {})["payload"] for each in await asyncio.gather(*waits)]
            self.assertEqual(sorted(got), [0, 1, 2, 3])
            last.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await last

    async def test_an_opened_room_is_not_destroyed(self) -> None:
        async with AsyncRoomd() as roomd, await roomd.rooms.create() as room:
            async with roomd.rooms.open(room.id):
                pass
            await room.get()
            await room.destroy()
