"""Start, output and end of a command, call by call. test_commands covers them with real guests."""

import asyncio
import base64
import threading
import time
from typing import Any
from unittest import mock

from roomd import AsyncSandbox, Cancel, Cancelled, CommandResult, Sandbox, TimeoutError
from roomd.client import AsyncioClient

from .scripted import Reply, ScriptedService, lines, ok, problem


def said(seq: int, text: str, stream: str = "stdout") -> dict[str, Any]:
    return {"type": stream, "seq": seq, "data_b64": base64.b64encode(text.encode()).decode()}


def ended(seq: int) -> dict[str, Any]:
    return {"type": "exit", "seq": seq, "exit_code": 0, "signal": None, "timed_out": False, "duration_ms": 1}


SILENT: Reply = (200, {"Content-Type": "application/x-ndjson", "Content-Length": "9999"}, "")


def silent(*events: dict[str, Any]) -> Reply:
    """A stream with these events that then stays open without data."""
    return (200, SILENT[1], lines(*events)[2])


class ExecTest(ScriptedService):
    def setUp(self) -> None:
        super().setUp()
        self.sandbox = Sandbox(self.client, "a", "b")

    def exec(self, *replies: Reply, **options: Any) -> CommandResult:
        self.replies = [ok({}), *replies]
        return self.sandbox.exec("true", **options)

    def test_without_input_closes_it(self) -> None:
        self.exec(lines(ended(1)))
        self.assertIs(self.sent()[0]["stdin_open"], False)
        self.asked.clear()
        self.exec(lines(ended(1)), stdin="x")
        self.assertNotIn("stdin_open", self.sent()[0])
        self.asked.clear()
        self.replies = [ok({})]
        self.sandbox.start("cat")
        self.assertNotIn("stdin_open", self.sent()[0])

    def test_limits_the_result_but_not_the_callback(self) -> None:
        heard: list[str] = []
        reply = lines(said(1, "abc"), said(2, "def"), said(3, "xy", "stderr"), ended(4))
        done = self.exec(reply, max_output_bytes=4, on_stdout=heard.append)
        self.assertEqual((done.stdout, done.stdout_truncated), ("abcd", True))
        self.assertEqual((done.stderr, done.stderr_truncated), ("xy", False))
        self.assertEqual("".join(heard), "abcdef")
        self.assertNotIn("max_output_bytes", self.sent()[0])
        with mock.patch("roomd.execution.MAX_OUTPUT_BYTES", 2):
            self.assertEqual(self.exec(reply).stdout, "ab")

    def test_times_out_and_leaves_the_command_running(self) -> None:
        for reply in (SILENT, silent(said(1, "x"))):
            self.methods.clear()
            started = time.monotonic()
            with self.assertRaises(TimeoutError):
                self.exec(reply, wait_ms=400, kill_on_cancel=True)
            self.assertLess(time.monotonic() - started, 3)
            self.assertEqual(self.methods, ["POST", "GET"])
        self.assertEqual(self.exec(lines(ended(1)), wait_ms=float("inf")).exit_code, 0)

    def test_a_slow_consumer_does_not_time_out(self) -> None:
        with mock.patch("roomd.stream.SILENT_SECONDS", 0.2):
            done = self.exec(lines(said(1, "x"), ended(2)), on_stdout=lambda _: time.sleep(0.5))
        self.assertEqual((done.stdout, len(self.asked)), ("x", 2))

    def test_a_raising_callback_closes_the_stream_immediately(self) -> None:
        def hear(text: str) -> None:
            raise KeyError(text)

        left: list[Any] = []
        real = self.client._transport._new_wire

        async def new_wire(seconds: float) -> Any:
            left.append(await real(seconds))
            return left[-1]

        with mock.patch.object(self.client._transport, "_new_wire", new_wire):
            try:
                self.exec(silent(said(1, "x")), on_stdout=hear)
            except KeyError:
                # Closed while the exception still references the frames of the stream.
                self.assertEqual([each._socket.fileno() for each in left], [-1])
            else:
                self.fail("the exception was not raised")

    def test_a_cancelled_start_ends_the_command_on_request(self) -> None:
        none = problem(404, "execution_not_found", False)
        stuck: Reply = (200, {"Content-Type": "application/json", "Content-Length": "99"}, "{")
        for kills in (True, False):
            self.methods.clear()
            # The start arrives after the first attempt to end it.
            self.replies = [stuck, none, ok({})]
            cancel = Cancel()
            threading.Timer(0.3, cancel.cancel).start()
            with cancel, self.assertRaises(Cancelled):
                self.sandbox.exec("true", exec_id="mine", kill_on_cancel=kills)
            self.assertEqual(self.methods, ["POST", "DELETE", "DELETE"] if kills else ["POST"])
        self.assertTrue(self.asked[1][0].endswith("/executions/mine"))

    def test_of_asyncio_raises_the_exception_of_a_callback(self) -> None:
        def hear(text: str) -> None:
            raise KeyError(text)

        async def run() -> None:
            client = AsyncioClient(self.client.url)
            sandbox = AsyncSandbox(Sandbox(client, "a", "b"))
            try:
                for reply in (silent(said(1, "x")), lines(said(1, "x"), ended(2))):
                    self.replies = [ok({}), reply]
                    with self.assertRaises(KeyError):
                        async with asyncio.timeout(5):
                            await sandbox.exec("true", on_stdout=hear)
            finally:
                client.close()

        asyncio.run(run())
