"""The same for asyncio: waiting calls are tasks, which can be cancelled."""

import asyncio
import os
import threading
import unittest
from typing import Any

from roomd import AsyncRoomd, Cancelled, NotFoundError, TimeoutError, continuing

WAITS = 200


class OfAsyncRooms(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.roomd = await self.enterAsyncContext(AsyncRoomd())


class AsyncRoomTest(OfAsyncRooms):
    async def test_is_created_listed_and_destroyed(self) -> None:
        async with await self.roomd.rooms.create(labels={"team": "search"}) as room:
            self.assertEqual((await room.get())["labels"], {"team": "search"})
            self.assertIn(room.id, [each["room_id"] async for each in self.roomd.rooms.list()])
        with self.assertRaises(NotFoundError):
            await room.get()
        with self.assertRaises(NotFoundError):
            await self.roomd.client.call("room_get", room_id=room.id)

    async def test_has_a_drive(self) -> None:
        drive = (await self.roomd.rooms.create("aio-files")).drive
        data = os.urandom(300_000)
        await drive.write("/ü.bin", data)
        self.assertEqual(await drive.read("/ü.bin"), data)
        async with await drive.open("/ü.bin", offset=10) as download:
            self.assertEqual(b"".join([part async for part in download]), data[10:])
        await asyncio.gather(*(drive.write(f"/{index}", str(index)) for index in range(30)))
        self.assertEqual(len([each async for each in drive.list()]), 31)

    async def test_has_agents_with_messages_and_barriers(self) -> None:
        room = await self.roomd.rooms.create("aio-talk")
        planner, worker = room.agent("planner"), room.agent("worker")
        await worker.subscribe([])
        heard = asyncio.create_task(worker.wait())
        await planner.send("worker", {"do": "it"})
        self.assertEqual((await heard or {}).get("payload"), {"do": "it"})
        await planner.send_many([{"destination": "worker", "payload": place} for place in range(3)])
        self.assertEqual([(await worker.wait() or {}).get("payload") for _ in range(3)], [0, 1, 2])
        reply = asyncio.create_task(planner.request("worker", 1))
        async for request in worker.messages():
            await worker.reply(request, 2)
            break
        self.assertEqual((await reply)["payload"], 2)
        passed = await asyncio.gather(*(room.agent(f"a{index}").barrier("all", parties=50) for index in range(50)))
        self.assertEqual({each["state"] for each in passed}, {"released"})
        with self.assertRaises(TimeoutError):
            await planner.barrier("never", parties=2, timeout_ms=100)

    async def test_a_task_continues_the_trace_of_its_message(self) -> None:
        room = await self.roomd.rooms.create("aio-traced")
        a = room.agent("a")
        places = [f"00-{digit * 32}-{digit * 16}-01" for digit in "123"]

        async def send(place: str) -> None:
            with continuing(place):
                await asyncio.sleep(0)
                await a.send("a", place)

        await asyncio.gather(*map(send, places))
        for _ in places:
            message = await a.wait() or {}
            self.assertEqual(message["headers"], {"traceparent": message["payload"]})

    async def test_yields_its_events(self) -> None:
        room = await self.roomd.rooms.create("aio-told")
        writing = asyncio.create_task(room.drive.write("/x", "x"))
        seen = []
        async for event in room.events(after=0):
            seen.append(event["event"])
            if seen[-1] == "drive.written":
                break
        await writing
        self.assertEqual(seen[0], "room.created")


class AsyncCancelTest(OfAsyncRooms):
    async def test_of_many_tasks_ends_their_waits_without_a_thread(self) -> None:
        room = await self.roomd.rooms.create("aio-cancel")
        before = threading.active_count()
        waits = [asyncio.create_task(room.agent(f"a{index}").wait()) for index in range(WAITS)]
        await self.are_in_progress(WAITS)
        self.assertEqual(threading.active_count(), before)
        for each in waits:
            each.cancel()
        ended = await asyncio.gather(*waits, return_exceptions=True)
        self.assertTrue(all(isinstance(each, asyncio.CancelledError) for each in ended))
        network: Any = self.roomd._client._network
        self.assertEqual(network._waits, {})
        await asyncio.gather(*(room.get() for _ in range(WAITS)))

    async def test_loses_no_message_at_any_time(self) -> None:
        room = await self.roomd.rooms.create("aio-race")
        agent = room.agent("a")
        await agent.subscribe([])
        seen: list[int] = []
        for number in range(40):
            waiting = asyncio.create_task(agent.wait())
            sending = asyncio.create_task(room.send("a", number))
            await asyncio.sleep(number * 0.001)
            waiting.cancel()
            for each in await asyncio.gather(waiting, return_exceptions=True):
                if isinstance(each, dict):
                    seen.append(each["payload"])
            await sending
        while (message := await agent.wait(timeout_ms=0)) is not None:
            seen.append(message["payload"])
        self.assertEqual(seen, list(range(40)))

    async def test_of_a_stream_closes_it(self) -> None:
        room = await self.roomd.rooms.create("aio-stream")

        async def listen() -> None:
            async for _ in room.events(after=0):
                pass

        listening = asyncio.create_task(listen())
        await self.are_in_progress(1)
        listening.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await listening
        with self.assertRaises(asyncio.TimeoutError):
            async with asyncio.timeout(0.2):
                await room.agent("a").wait()

    async def test_closing_cancels_waiting_calls(self) -> None:
        roomd = AsyncRoomd()
        room = await roomd.rooms.create("aio-close")
        waits = [asyncio.create_task(room.agent(name).wait()) for name in "abc"]
        await self.are_in_progress(3, roomd)
        roomd.close()
        ended = await asyncio.gather(*waits, return_exceptions=True)
        self.assertEqual([type(each) for each in ended], [Cancelled] * 3)

    async def are_in_progress(self, calls: int, roomd: AsyncRoomd | None = None) -> None:
        network: Any = (roomd or self.roomd)._client._network
        async with asyncio.timeout(20):
            while len(network._waits) < calls:
                await asyncio.sleep(0.01)
