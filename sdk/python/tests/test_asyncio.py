"""Connections of asyncio: kept, broken, cancelled and timed out, against a service in the same event loop, without a thread."""

import asyncio
import json
import socket
import struct
import tempfile
import threading
import unittest
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any
from unittest import mock

from roomd import AsyncRoomd, Cancelled, ConnectionError, InvalidRequestError, RoomdError, TimeoutError

Act = Callable[["Call"], Awaitable[None]]
CALLS = 200


class Call:
    """A request to the service, and its response."""

    def __init__(self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.line, *fields = head.split("\r\n")
        self.headers = dict(each.split(": ", 1) for each in fields if each)
        self.reader = reader
        self.writer = writer

    async def body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return await self.reader.readexactly(int(self.headers.get("Content-Length", "0")))
        whole = b""
        while size := int(await self.reader.readuntil(b"\n"), 16):
            whole += (await self.reader.readexactly(size + 2))[:-2]
        await self.reader.readline()
        return whole

    async def answer(self, value: Any = None, status: int = 200, kind: str = "application/json") -> None:
        await self.body()
        self.send(status, json.dumps(value or {}).encode(), kind)

    def send(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.write(f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)

    def write(self, data: bytes) -> None:
        self.writer.write(data)

    def reset(self) -> None:
        connected = self.writer.get_extra_info("socket")
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


class AsyncioTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.acts: list[Act] = []
        self.calls: list[Call] = []
        self.connections = 0
        self.serving: list[asyncio.Task[Any]] = []
        self.addAsyncCleanup(self.served)
        # Retries follow immediately.
        self.enterContext(mock.patch("random.uniform", return_value=0.0))
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.addAsyncCleanup(server.wait_closed)
        self.addCleanup(server.close)
        self.roomd = AsyncRoomd(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", "key-1")
        self.addCleanup(self.roomd.close)
        self.client = self.roomd.client

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.serving.extend(filter(None, [asyncio.current_task()]))
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                self.calls.append(Call(head, reader, writer))
                act = self.acts.pop(0) if self.acts else Call.answer
                await act(self.calls[-1])
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()

    async def served(self) -> None:
        await asyncio.gather(*self.serving)

    async def get(self, **options: Any) -> Any:
        return await self.client.call("room_get", options, room_id="a")

    async def until(self, probe: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not probe():
                await asyncio.sleep(0)

    def idle(self) -> list[Any]:
        return self.roomd._client._transport._idle

    def waits(self, closed: asyncio.Event, told: bytes = b"") -> Act:
        """Sends this, and sets the event once the client has closed the connection."""

        async def act(call: Call) -> None:
            await call.body()
            call.write(told)
            try:
                await call.reader.read()
            finally:
                closed.set()

        return act


class KeptTest(AsyncioTest):
    async def test_connections_are_reused(self) -> None:
        for _ in range(20):
            await self.get()
        self.assertEqual(self.connections, 1)
        for _ in range(3):
            await asyncio.gather(*(self.get() for _ in range(5)))
        self.assertLessEqual(self.connections, 5)
        self.assertEqual(len(self.idle()), self.connections)

    async def test_many_calls_run_concurrently_without_a_thread(self) -> None:
        all_are_here = asyncio.Event()

        async def act(call: Call) -> None:
            if len(self.calls) == CALLS:
                all_are_here.set()
            await all_are_here.wait()
            await call.answer({"room_id": "a"})

        self.acts = [act] * CALLS
        before = threading.active_count()
        made = await asyncio.gather(*(self.get(timeout_ms=60_000) for _ in range(CALLS)))
        self.assertEqual((len(made), len(self.calls)), (CALLS, CALLS))
        self.assertEqual(threading.active_count(), before)

    async def test_an_idle_connection_that_was_closed_is_replaced_before_the_call(self) -> None:
        async def closes(call: Call) -> None:
            await call.answer()
            raise ConnectionResetError

        self.acts = [closes]
        await self.get()
        await self.until(lambda: not self.idle()[0].is_quiet())
        await self.get()
        self.assertEqual((self.connections, len(self.calls)), (2, 2))

    async def test_an_idle_connection_with_unread_data_is_replaced(self) -> None:
        async def says_more(call: Call) -> None:
            await call.answer()
            await self.until(lambda: len(self.idle()) == 1)
            call.send(408, b"")

        self.acts = [says_more]
        await self.get()
        await self.until(lambda: not self.idle()[0].is_quiet())
        await self.get()
        self.assertEqual(self.connections, 2)

    async def test_responses_end_by_length_chunk_or_close(self) -> None:
        kinds = [
            b"HTTP/1.1 103 X\r\nLink: x\r\n\r\nHTTP/1.1 200 X\r\nContent-Length: 3\r\n\r\nabc",
            b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n1;x=y\r\na\r\n2\r\nbc\r\n0\r\nX-Sum: 1\r\n\r\n",
            b"HTTP/1.1 200 X\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc",
            b"HTTP/1.0 200 X\r\n\r\nabc",
        ]
        for kept, kind in zip((1, 1, 0, 0), kinds, strict=True):

            async def act(call: Call, kind: bytes = kind, closes: bool = not kept) -> None:
                for start in range(0, len(kind), 7):
                    call.write(kind[start : start + 7])
                    await asyncio.sleep(0)
                if closes:
                    raise ConnectionResetError

            self.acts = [act]
            self.assertEqual(await self.client.read("file_get", room_id="a", path="x"), b"abc")
            self.assertEqual(len(self.idle()), kept)

    async def test_a_client_may_be_used_in_one_loop_after_the_other(self) -> None:
        await self.get()
        [other] = self.idle()
        await asyncio.to_thread(lambda: self.assertFalse(other.is_quiet()))
        self.assertTrue(other.is_quiet())


class BrokenTest(AsyncioTest):
    async def test_a_reset_connection_is_retried_with_the_same_key(self) -> None:
        async def resets(call: Call) -> None:
            await call.body()
            call.reset()

        async def resets_later(call: Call) -> None:
            await call.body()
            call.write(b'HTTP/1.1 200 X\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"room')
            await call.writer.drain()
            call.reset()

        self.acts = [resets, resets_later]
        await self.client.call("room_create", room_id="a")
        self.assertEqual(len({each.headers["Idempotency-Key"] for each in self.calls}), 1)
        self.assertEqual((len(self.calls), self.connections, len(self.idle())), (3, 3, 1))

    async def test_a_response_before_the_end_of_the_body_is_read(self) -> None:
        problem = {"status": 413, "code": "payload_too_large", "retryable": False, "detail": "Too large.", "hint": None}

        async def refuses(call: Call) -> None:
            call.send(413, json.dumps(problem).encode(), "application/problem+json")
            await call.writer.drain()
            raise ConnectionResetError

        self.acts = [refuses]
        with self.assertRaises(InvalidRequestError):
            await self.client.upload("file_put", bytes(20_000_000), room_id="a", path="x")
        self.assertEqual(len(self.calls), 1)

    async def test_a_silent_service_times_out_and_its_connection_is_closed(self) -> None:
        closed = asyncio.Event()
        self.acts = [self.waits(closed)]
        with self.assertRaises(TimeoutError):
            await self.get(timeout_ms=200)
        await closed.wait()
        self.assertEqual(self.idle(), [])

    async def test_a_malformed_response_is_a_broken_connection(self) -> None:
        for told in (b"SSH-2.0-x\r\n", b"HTTP/1.1 200 X\r\nX: " + b"x" * 100_000, b"HTTP/1.1 200 X\r\nA: b\r\n"):

            async def act(call: Call, told: bytes = told) -> None:
                call.write(told)
                await call.writer.drain()
                raise ConnectionResetError

            self.acts = [act]
            self.assertEqual(await self.get(), {})


class CancelledTest(AsyncioTest):
    async def test_a_call_closes_its_connection_in_the_middle_of_a_response(self) -> None:
        parts = (b"", b"HTTP/1.1 200 X\r\nContent-", b'HTTP/1.1 200 X\r\nContent-Length: 99\r\n\r\n{"room')
        for told in parts:
            closed = asyncio.Event()
            self.acts = [self.waits(closed, told)]
            self.calls.clear()
            calling = asyncio.create_task(self.get())
            await self.until(lambda: len(self.calls) == 1)
            calling.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await calling
            async with asyncio.timeout(10):
                await closed.wait()
            self.assertEqual(self.idle(), [])
        self.assertEqual(await self.get(), {})

    async def test_a_call_that_sends_ends_although_the_service_reads_nothing(self) -> None:
        closed = asyncio.Event()

        async def act(call: Call) -> None:
            await closed.wait()
            raise ConnectionResetError

        self.acts = [act]
        calling = asyncio.create_task(self.client.upload("file_put", bytes(50_000_000), room_id="a", path="x"))
        await self.until(lambda: len(self.calls) == 1)
        calling.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await calling
        closed.set()

    async def test_a_stream_closes_its_connection_at_a_break(self) -> None:
        closed = asyncio.Event()
        event = b'{"seq": 1, "event": "room.created"}\n'
        self.acts = [self.waits(closed, b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n24\r\n" + event + b"\r\n")]
        async for record in self.client.events("room_events", room_id="a", after=0):
            self.assertEqual(record["seq"], 1)
            break
        async with asyncio.timeout(10):
            await closed.wait()

    async def test_a_command_is_ended_before_the_cancellation_is_raised(self) -> None:
        closed = asyncio.Event()
        self.acts = [Call.answer, self.waits(closed, b"HTTP/1.1 200 X\r\nContent-Length: 99\r\n\r\n")]
        sandbox = self.roomd.rooms.open("a").sandbox("b")
        calling = asyncio.create_task(sandbox.exec("sleep 9", exec_id="c", kill_on_cancel=True))
        await self.until(lambda: len(self.calls) == 2)
        calling.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await calling
        self.assertTrue(self.calls[2].line.startswith("DELETE /v1/rooms/a/sandboxes/b/executions/c"))

    async def test_calls_are_aborted_by_a_close_in_another_thread(self) -> None:
        closed = asyncio.Event()
        self.acts = [self.waits(closed)]
        calling = asyncio.create_task(self.get())
        await self.until(lambda: len(self.calls) == 1)
        await asyncio.to_thread(self.roomd.close)
        with self.assertRaises(Cancelled):
            await calling
        async with asyncio.timeout(10):
            await closed.wait()

    async def test_of_the_caller_differs_from_a_timeout_of_the_call(self) -> None:
        self.acts = [self.waits(asyncio.Event())]
        with self.assertRaises(asyncio.TimeoutError) as raised:
            async with asyncio.timeout(0.1):
                await self.get()
        self.assertNotIsInstance(raised.exception, RoomdError)


class BodyTest(AsyncioTest):
    async def setUpBodies(self) -> list[bytes]:
        bodies: list[bytes] = []

        async def act(call: Call) -> None:
            bodies.append(await call.body())
            call.send(200, b"{}")

        self.acts = [act] * 9
        return bodies

    async def put(self, body: Any) -> None:
        await self.client.upload("file_put", body, room_id="a", path="x")

    async def test_is_sent_from_bytes_iterables_and_files(self) -> None:
        bodies = await self.setUpBodies()
        data = bytes(range(256)) * 1000

        async def source() -> AsyncIterator[bytes]:
            for start in range(0, len(data), 1000):
                yield data[start : start + 1000]
                await asyncio.sleep(0)

        with tempfile.TemporaryDirectory() as directory:
            local = Path(directory, "x")
            local.write_bytes(data)
            for body in (data, source(), iter([data[:9], b"", data[9:]]), local):
                await self.put(body)
        self.assertEqual(bodies, [data] * 4)
        lengths = [each.headers.get("Content-Length") for each in self.calls]
        self.assertEqual(lengths, [str(len(data)), None, None, str(len(data))])

    async def test_an_exception_of_its_source_is_raised_unchanged_and_closes_the_connection(self) -> None:
        await self.setUpBodies()
        error = ValueError("of the source")

        async def source() -> AsyncIterator[bytes]:
            yield b"one"
            raise error

        with self.assertRaises(ValueError) as raised:
            await self.put(source())
        self.assertIs(raised.exception, error)
        self.assertEqual(self.idle(), [])

    async def test_a_file_is_downloaded_as_it_arrives(self) -> None:
        goes_on = asyncio.Event()

        async def act(call: Call) -> None:
            call.write(b"HTTP/1.1 200 X\r\nContent-Length: 6\r\nETag: x\r\n\r\nabc")
            await goes_on.wait()
            call.write(b"def")

        self.acts = [act]
        parts = []
        async with await self.client.download("file_get", room_id="a", path="x") as download:
            self.assertEqual((download.size, download.etag), (6, "x"))
            async for part in download:
                parts.append(part)
                goes_on.set()
        self.assertEqual(parts, [b"abc", b"def"])

    async def test_a_download_to_a_file_that_breaks_leaves_none(self) -> None:
        async def act(call: Call) -> None:
            call.write(b"HTTP/1.1 200 X\r\nContent-Length: 6\r\n\r\nabc")
            raise ConnectionResetError

        async def whole(call: Call) -> None:
            call.send(200, b"abcdef")

        self.acts = [act, whole]
        with tempfile.TemporaryDirectory() as directory:
            local = Path(directory, "x")
            drive = self.roomd.rooms.open("a").drive
            with self.assertRaises(ConnectionError):
                await drive.download("x", local)
            self.assertEqual(list(Path(directory).iterdir()), [])
            await drive.download("x", local)
            self.assertEqual(local.read_bytes(), b"abcdef")

    async def test_several_files_are_written_in_parallel_and_the_first_error_is_raised(self) -> None:
        bodies = await self.setUpBodies()
        files = self.roomd.rooms.open("a").sandbox("b").files
        await files.write_many({f"/{index}": str(index) for index in range(9)})
        self.assertEqual(sorted(bodies), [str(index).encode() for index in range(9)])
        with self.assertRaisesRegex(ValueError, "not an absolute path"):
            await files.write_many({"/a": "a", "b": "b"})
