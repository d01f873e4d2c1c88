"""Traces, connections, and streams whose resumption takes long, against a scripted service.

test/unit/sdk/policy-cases.ts has the policy that both SDKs share.
"""

import pickle
from typing import Any
from unittest import mock

from roomd import Client, ConnectionError, TimeoutError, continuing

from .scripted import ROOM, ScriptedService, lines, ok, out


class TransportTest(ScriptedService):
    def test_a_call_continues_the_enclosing_trace(self) -> None:
        one, other = (f"00-{digit * 32}-{digit * 16}-01" for digit in "12")
        self.replies = [ok(ROOM)] * 5
        traced = Client(self.client.url, traceparent=lambda: other)
        self.addCleanup(traced.close)
        traced.call("room_create", room_id="a")
        with continuing({"headers": {"traceparent": one}}):
            traced.call("room_create", room_id="a")
            with continuing("no traceparent"), continuing({"headers": {}}):
                self.client.call("room_create", room_id="a")
        with mock.patch.dict("os.environ", TRACEPARENT=other):
            told = Client(self.client.url)
        self.addCleanup(told.close)
        told.call("room_create", room_id="a")
        self.client.call("room_create", room_id="a")
        seen = [headers.get("traceparent") for _, headers, _ in self.asked]
        self.assertEqual(seen, [other, one, one, other, None])

    def test_connections_are_reused(self) -> None:
        self.replies = [ok(ROOM)] * 5
        for _ in range(5):
            self.client.call("room_get", room_id="a")
        self.assertEqual(len(self.client._transport._idle), 1)

    def test_a_closed_client_keeps_no_connection(self) -> None:
        self.replies = [ok(ROOM)]
        self.client.close()
        self.client.call("room_get", room_id="a")
        self.assertEqual(self.client._transport._idle, [])

    def test_a_pickled_connection_error_keeps_its_fields(self) -> None:
        error = ConnectionError("No.", "foreign", "http://a", 404)
        copy = pickle.loads(pickle.dumps(error))
        self.assertEqual((str(copy), copy.fault, copy.url, copy.status), ("No.", "foreign", "http://a", 404))

    def follow(self) -> list[dict[str, Any]]:
        return list(self.client.events("execution_stream", room_id="a", sandbox="b", exec_id="c"))

    def test_a_silent_stream_is_reopened(self) -> None:
        silent = (200, {"Content-Type": "application/x-ndjson", "Content-Length": "1000"}, "")
        self.replies = [silent, lines({"type": "exit", "seq": 1})]
        with self.shorter("SILENT_SECONDS", 0.2):
            self.assertEqual([event["seq"] for event in self.follow()], [1])

    def late(self, *late: int) -> Any:
        """Makes these of the calls time out; `self.times` has the time limit of each call."""
        self.times: list[float | None] = []
        real = self.client._transport.send

        async def send(sent: Any, read: Any, options: Any) -> Any:
            self.times.append(options.get("wait_ms"))
            if len(self.times) in late:
                raise TimeoutError("The service has not answered in time.")
            return await real(sent, read, options)

        return mock.patch.object(self.client._transport, "send", send)

    def test_an_unanswered_resumption_is_retried(self) -> None:
        self.replies = [lines(out(1)), lines({"type": "exit", "seq": 2})]
        with self.late(2, 3):
            self.assertEqual([event["seq"] for event in self.follow()], [1, 2])
        self.assertEqual(self.times, [None, 45_000, 45_000, 45_000])

    def test_an_unanswered_first_request_is_not_retried(self) -> None:
        with self.late(1), self.assertRaises(TimeoutError):
            self.follow()
        self.assertEqual(self.times, [None])

    def test_a_stream_is_resumed_within_the_timeout_of_the_caller(self) -> None:
        self.replies = [lines(out(1))]
        name = {"room_id": "a", "sandbox": "b", "exec_id": "c"}
        with self.late(*range(2, 100)), self.assertRaises(TimeoutError):
            list(self.client.events("execution_stream", {"timeout_ms": 1000}, **name))
        self.assertLessEqual(max(each or 0 for each in self.times), 1000)

    def test_a_stream_that_cannot_be_resumed_raises_with_its_cause(self) -> None:
        self.replies = [lines(out(1))]
        with self.shorter("AWAY_SECONDS", 0.3), self.late(*range(2, 100)), self.assertRaises(ConnectionError) as away:
            self.follow()
        self.assertIsInstance(away.exception.__cause__, TimeoutError)

    def shorter(self, name: str, seconds: float) -> Any:
        return mock.patch(f"roomd.stream.{name}", seconds)
