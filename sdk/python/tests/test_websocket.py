"""A WebSocket, frame by frame, and the error of a terminal that cannot be attached to."""

import asyncio
import os
import socket
import threading
import unittest
from typing import Any
from unittest import mock

from roomd import AsyncAttachedTerminal, Cancel, Cancelled, ConnectionError, NotFoundError, Roomd
from roomd.terminal import AttachedTerminal
from roomd.coroutines import aio
from roomd.network import Asyncio, Blocking, BlockingWire, Received, await_ready
from roomd.websocket import BINARY, TEXT, WebSocket


def websocket(connected: socket.socket, early: bytes = b"") -> WebSocket:
    return WebSocket(Blocking(), Received(BlockingWire(connected), early))


def frame(first: int, payload: bytes) -> bytes:
    """A frame of a server: not masked."""
    size = len(payload)
    if size < 126:
        return bytes([first, size]) + payload
    if size < 1 << 16:
        return bytes([first, 126]) + size.to_bytes(2, "big") + payload
    return bytes([first, 127]) + size.to_bytes(8, "big") + payload


class WebSocketTest(unittest.TestCase):
    def setUp(self) -> None:
        ours, self.far = socket.socketpair()
        self.near = websocket(ours, frame(0x82, b"early"))
        self.far.settimeout(10)
        for end in (self.near.close, self.far.close):
            self.addCleanup(end)

    def sent(self) -> tuple[int, bytes]:
        """The next frame of the client, unmasked."""
        read = self.far.makefile("rb")
        self.addCleanup(read.close)
        first, second = read.read(2)
        self.assertTrue(second & 0x80)
        size = second & 0x7F
        if size >= 126:
            size = int.from_bytes(read.read(2 if size == 126 else 8), "big")
        mask = read.read(4)
        return first, bytes(byte ^ mask[index % 4] for index, byte in enumerate(read.read(size)))

    def test_messages_of_every_size_are_sent_and_received(self) -> None:
        self.assertEqual(self.near.receive(), (BINARY, b"early"))
        for size in (0, 1, 125, 126, 65_535, 65_536, 300_000):
            data = os.urandom(size)
            sending = threading.Thread(target=self.near.send, args=(BINARY, data))
            sending.start()
            self.assertEqual(self.sent(), (0x82, data))
            sending.join()
            sending = threading.Thread(target=self.far.sendall, args=(frame(0x81, data),))
            sending.start()
            self.assertEqual(self.near.receive(), (TEXT, data))
            sending.join()

    def test_fragments_are_one_message_and_pings_between_them_are_answered(self) -> None:
        self.near.receive()
        parts = ((0x02, b"a"), (0x89, b"ping"), (0x00, b"b"), (0x8A, b""), (0x80, b"c"))
        self.far.sendall(b"".join(frame(*part) for part in parts))
        self.assertEqual(self.near.receive(), (BINARY, b"abc"))
        self.assertEqual(self.sent(), (0x8A, b"ping"))

    def test_a_close_frame_ends_it_and_a_lost_connection_raises(self) -> None:
        self.near.receive()
        self.far.sendall(frame(0x88, b"\x03\xe8bye"))
        self.assertIsNone(self.near.receive())
        self.assertEqual(self.sent(), (0x88, b"\x03\xe8"))
        self.far.sendall(frame(0x82, b"whole")[:4])
        self.far.shutdown(socket.SHUT_WR)
        with self.assertRaises(ConnectionError):
            self.near.receive()

    def test_a_close_frame_with_a_reason_raises(self) -> None:
        self.near.receive()
        self.far.sendall(frame(0x88, b"\x0f\xa1taken_over: another client attached"))
        with self.assertRaisesRegex(ConnectionError, "taken_over: another client attached"):
            self.near.receive()

    def test_a_waiting_receive_can_be_cancelled(self) -> None:
        self.near.receive()
        cancel = Cancel()
        threading.Timer(0.2, cancel.cancel).start()
        with cancel, self.assertRaises(Cancelled):
            self.near.receive()


class CloseTest(unittest.TestCase):
    def setUp(self) -> None:
        self.ours, self.far = socket.socketpair()
        self.near = websocket(self.ours)
        self.far.settimeout(10)
        self.waits = threading.Event()
        for end in (self.near.close, self.far.close):
            self.addCleanup(end)
        # Signals as late as possible: a close just before the wait must be noticed too.
        self.enterContext(mock.patch("roomd.network.await_ready", self.await_ready))

    def await_ready(self, *args: Any) -> bool:
        self.waits.set()
        return await_ready(*args)

    def closed_under(self, act: Any) -> list[Any]:
        """Results of `act` when another thread closes the socket during its wait."""
        outcome: list[Any] = []

        def acts() -> None:
            try:
                outcome.append(act())
            except ConnectionError as error:
                outcome.append(error)

        # A daemon thread, so that the tests end even if nothing wakes it.
        acting = threading.Thread(target=acts, daemon=True)
        acting.start()
        self.assertTrue(self.waits.wait(10))
        self.near.close()
        acting.join(10)
        self.assertFalse(acting.is_alive())
        return outcome

    def test_wakes_a_receiver_and_closes_the_connection(self) -> None:
        self.assertEqual(self.closed_under(self.near.receive), [None])
        self.assertEqual(self.far.recv(1), b"")
        self.assertEqual(self.ours.fileno(), -1)
        self.assertIsNone(self.near.receive())
        self.near.close()

    def test_wakes_a_sender(self) -> None:
        [error] = self.closed_under(lambda: self.near.send(BINARY, bytes(10_000_000)))
        self.assertIsInstance(error, ConnectionError)
        self.assertEqual(self.ours.fileno(), -1)
        with self.assertRaises(ConnectionError):
            self.near.send(BINARY, b"x")

    def test_just_before_the_wait_is_noticed(self) -> None:
        near: list[WebSocket] = []

        class ClosedMeanwhile(socket.socket):
            def recv(self, *_: Any) -> bytes:
                near[0].close()
                raise BlockingIOError

        near.append(websocket(ClosedMeanwhile(fileno=self.ours.detach())))
        self.assertIsNone(near[0].receive())


class AsyncioTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        ours, far = socket.socketpair()
        self.network = Asyncio()
        self.near = WebSocket(self.network, Received(await self.network.wire(ours)))
        self.reader, self.writer = await asyncio.open_connection(sock=far)
        self.attached = AsyncAttachedTerminal(AttachedTerminal(self.near))
        self.addCleanup(self.writer.close)
        self.addCleanup(self.attached.close)

    async def begins_to_wait(self) -> None:
        async with asyncio.timeout(10):
            while not self.network._waits:
                await asyncio.sleep(0)

    async def shown(self) -> list[bytes]:
        return [part async for part in self.attached.output()]

    async def test_close_ends_the_output(self) -> None:
        showing = asyncio.create_task(self.shown())
        await self.begins_to_wait()
        self.attached.close()
        async with asyncio.timeout(10):
            self.assertEqual(await showing, [])

    async def test_input_is_sent_and_output_received_in_the_same_loop(self) -> None:
        data = os.urandom(300_000)
        sending = asyncio.create_task(self.attached.write(data))
        head = await self.reader.readexactly(14)
        self.assertEqual((head[0], int.from_bytes(head[2:10], "big")), (0x82, len(data)))
        await self.reader.readexactly(len(data))
        await sending
        self.writer.write(frame(0x82, data) + frame(0x88, b"\x03\xe8"))
        self.assertEqual(await self.shown(), [data])

    async def test_a_cancelled_receive_loses_no_part_of_a_frame(self) -> None:
        whole = frame(0x82, b"whole")
        for part in (whole[:1], whole[1:4]):
            self.writer.write(part)
            receiving = asyncio.create_task(aio(self.near.receive)())
            await self.begins_to_wait()
            receiving.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await receiving
        self.writer.write(whole[4:])
        self.assertEqual(await aio(self.near.receive)(), (BINARY, b"whole"))


class AttachTest(unittest.TestCase):
    def test_to_a_missing_sandbox_raises(self) -> None:
        with Roomd() as roomd, roomd.rooms.create() as room:
            with self.assertRaises(NotFoundError):
                room.sandbox("none").terminal("ter_none").attach()
            with self.assertRaises(NotFoundError):
                path = f"/v1/rooms/{room.id}/sandboxes/none/terminals/ter_none/attach"
                roomd.client.socket(path, ["roomd.terminal"], 10)
