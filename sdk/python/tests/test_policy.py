"""The retry policy of calls and streams, call by call, against a scripted service."""

import json
import pickle
import time
from typing import Any
from unittest import mock

from roomd import (
    Client,
    ConnectionError,
    LimitError,
    ProblemError,
    Sandbox,
    StreamError,
    TimeoutError,
    UnavailableError,
    continuing,
)
from roomd.coroutines import run

from .scripted import BROKEN, ROOM, ScriptedService, lines, ok, out, problem


class PolicyTest(ScriptedService):
    def raised(self, kind: type[Exception], **options: Any) -> Any:
        with self.assertRaises(kind) as raised:
            self.client.call("room_create", options, room_id="a")
        return raised.exception

    def test_a_call_has_credentials_and_headers(self) -> None:
        self.replies = [ok(ROOM)]
        self.client.call("room_create", {"headers": {"X-Of-Mine": "1"}}, room_id="a", labels={"ü": "ö"})
        [(path, headers, body)] = self.asked
        self.assertEqual(path, "/below/v1/rooms")
        self.assertEqual(headers["Authorization"], "Bearer key-1")
        self.assertEqual((headers["Content-Type"], headers["X-Of-Mine"]), ("application/json", "1"))
        self.assertEqual(json.loads(body), {"room_id": "a", "labels": {"ü": "ö"}})

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

    def test_a_retry_after_a_fault_keeps_the_key(self) -> None:
        self.replies = [
            problem(503, "not_ready", True, **{"Retry-After": "0"}),
            (502, {"Content-Type": "text/html", "Retry-After": "0"}, "<h1>Bad gateway</h1>"),
            ok(ROOM),
        ]
        self.client.call("room_create", room_id="a")
        self.assertEqual(len(set(self.keys())), 1)
        self.assertEqual(len(self.asked), 3)

    def test_a_retry_after_a_rejection_has_a_new_key(self) -> None:
        self.replies = [problem(429, "rate_limited", True, **{"Retry-After": "1"}), ok(ROOM)]
        started = time.monotonic()
        self.client.call("room_create", room_id="a")
        self.assertGreaterEqual(time.monotonic() - started, 1)
        self.assertEqual(len(set(self.keys())), 2)

    def test_a_call_in_progress_keeps_its_key_and_is_awaited(self) -> None:
        running = problem(409, "idempotency_in_progress", True, **{"Retry-After": "0"})
        self.replies = [BROKEN, *[running] * 10, ok(ROOM)]
        self.client.call("room_create", room_id="a")
        self.assertEqual((len(set(self.keys())), len(self.asked)), (1, 12))

    def test_a_call_that_may_be_done_keeps_its_key_when_rate_limited(self) -> None:
        fast = problem(429, "rate_limited", True, **{"Retry-After": "0"})
        full = problem(429, "inbox_full", True, **{"Retry-After": "0"})
        self.replies = [BROKEN, fast, full, fast, ok(ROOM)]
        self.client.call("room_create", room_id="a")
        one, two, three, four, five = self.keys()
        self.assertEqual((one, two), (two, three))
        self.assertEqual(len({three, four, five}), 3)

    def test_json_of_a_proxy_is_not_a_result(self) -> None:
        self.replies = [(502, {"Content-Type": "application/json", "Retry-After": "0"}, "{}"), ok(ROOM)]
        self.assertEqual(self.client.call("room_create", room_id="a"), ROOM)

    def test_a_retry_after_a_rejection_keeps_a_key_of_the_caller(self) -> None:
        self.replies = [problem(429, "rate_limited", True, **{"Retry-After": "0"}), ok(ROOM)]
        self.client.call("room_create", {"idempotency_key": "mine"}, room_id="a")
        self.assertEqual(self.keys(), ["mine", "mine"])

    def test_a_permanent_error_is_raised_immediately(self) -> None:
        self.replies = [problem(500, "internal", False)]
        self.assertEqual(self.raised(UnavailableError).code, "internal")
        self.assertEqual(len(self.asked), 1)

    def test_the_outcome_of_a_wait_is_raised_immediately(self) -> None:
        for code in ("barrier_timeout", "reply_timeout"):
            self.asked.clear()
            self.replies = [problem(504, code, True)]
            self.raised(ProblemError)
            self.assertEqual(len(self.asked), 1)

    def test_a_retry_beyond_the_timeout_is_not_awaited(self) -> None:
        self.replies = [problem(429, "rate_limited", True, **{"Retry-After": "60"})]
        started = time.monotonic()
        self.raised(LimitError, timeout_ms=2000)
        self.assertLess(time.monotonic() - started, 1)

    def test_a_call_has_at_most_six_attempts(self) -> None:
        self.replies = [problem(503, "not_ready", True, **{"Retry-After": "0"})] * 7
        self.raised(UnavailableError)
        self.assertEqual(len(self.asked), 6)

    def test_an_answer_of_another_server_raises(self) -> None:
        self.replies = [(404, {"Content-Type": "text/html"}, "<h1>Nothing here</h1>")]
        self.assertIn("404", str(self.raised(ConnectionError)))

    def test_health_of_an_unhealthy_service_is_returned(self) -> None:
        self.replies = [(503, {"Content-Type": "application/json"}, '{"status": "unavailable"}')]
        self.assertEqual(self.client.call("health")["status"], "unavailable")

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

    def test_a_url_without_a_service_is_reported_within_two_seconds_with_its_remedy(self) -> None:
        refused = "http://127.0.0.1:1"
        unknown = "http://no-such-host.invalid:8080"
        reasons = {refused: "the connection is refused", unknown: "the name no-such-host.invalid does not resolve"}
        for url, reason in reasons.items():
            client = Client(url, "key-1")
            self.addCleanup(client.close)
            calls = (
                lambda client=client: client.call("room_create", room_id="a"),
                lambda client=client: list(client.events("room_events", room_id="a")),
            )
            for call in calls:
                started = time.monotonic()
                with self.assertRaises(ConnectionError) as raised:
                    call()
                self.assertLess(time.monotonic() - started, 2)
                self.assertEqual((raised.exception.fault, raised.exception.url), ("unreachable", url))
                self.assertIn(f" {url}: {reason}. ", str(raised.exception))
                self.assertIn("ROOMD_URL", str(raised.exception))

    def test_a_service_that_has_answered_before_is_tried_six_times(self) -> None:
        self.replies = [ok(ROOM)]
        self.client.call("room_get", room_id="a")
        refused = ConnectionRefusedError("refused")
        with (
            mock.patch.object(self.client._transport, "_idle_wire", return_value=None),
            mock.patch.object(self.client._transport, "_new_wire", side_effect=refused) as connect,
            mock.patch("random.uniform", return_value=0.3),
        ):
            self.raised(ConnectionError)
        self.assertEqual(connect.call_count, 6)

    def test_a_service_that_starts_within_a_second_is_reached(self) -> None:
        self.replies = [ok(ROOM)]
        connect = [ConnectionRefusedError("refused"), run(self.client._transport._new_wire(10))]
        with mock.patch.object(self.client._transport, "_new_wire", side_effect=connect):
            self.assertEqual(self.client.call("room_get", room_id="a"), ROOM)

    def test_an_interruption_is_reported_rather_than_the_refused_connection_after_it(self) -> None:
        self.replies = [BROKEN]
        connect = [run(self.client._transport._new_wire(10)), *[ConnectionRefusedError("refused")] * 5]
        with (
            mock.patch.object(self.client._transport, "_new_wire", side_effect=connect),
            mock.patch("random.uniform", return_value=0.0),
        ):
            self.assertEqual(self.raised(ConnectionError).fault, "broken")

    def test_a_create_without_a_connection_destroys_no_room(self) -> None:
        started = time.monotonic()
        with self.assertRaises(ConnectionError):
            Sandbox.create(url="http://127.0.0.1:1")
        self.assertLess(time.monotonic() - started, 1.9)

    def test_a_pickled_connection_error_keeps_its_fields(self) -> None:
        error = ConnectionError("No.", "foreign", "http://a", 404)
        copy = pickle.loads(pickle.dumps(error))
        self.assertEqual((str(copy), copy.fault, copy.url, copy.status), ("No.", "foreign", "http://a", 404))

    def follow(self) -> list[dict[str, Any]]:
        return list(self.client.events("execution_stream", room_id="a", sandbox="b", exec_id="c"))

    def test_a_stream_without_its_last_event_is_resumed(self) -> None:
        end = {"type": "exit", "seq": 4}
        self.replies = [lines(out(1), out(2)), lines(), lines({"type": "ping"}, out(3)), lines(end, out(5))]
        self.assertEqual([event["seq"] for event in self.follow()], [1, 2, 3, 4])
        self.assertEqual([path.partition("?")[2] for path, _, _ in self.asked], ["", "after=2", "after=2", "after=3"])

    def test_a_truncated_event_is_requested_again(self) -> None:
        status, headers, text = lines(out(1), out(2))
        self.replies = [(status, headers, text[:-5]), lines(out(2), {"type": "exit", "seq": 3})]
        self.assertEqual([event["seq"] for event in self.follow()], [1, 2, 3])

    def test_a_stream_that_cannot_continue_raises_its_error(self) -> None:
        error = {"type": "error", "code": "sandbox_not_found", "detail": "It has gone.", "retryable": False}
        self.replies = [lines(out(1), error)]
        with self.assertRaises(StreamError) as ended:
            self.follow()
        self.assertEqual((ended.exception.code, str(ended.exception)), ("sandbox_not_found", "It has gone."))

    def test_an_audit_stream_continues_depending_on_the_error_code(self) -> None:
        end = {"event": "room.destroyed", "outcome": "success", "seq": 9}
        self.replies = [lines({"type": "error", "code": "shutting_down"}), lines(end)]
        self.assertEqual([event["seq"] for event in self.client.events("room_events", room_id="a")], [9])
        self.replies = [lines({"type": "error", "code": "api_key_expired"})]
        with self.assertRaises(StreamError):
            list(self.client.events("room_events", room_id="a"))

    def test_a_silent_stream_is_reopened(self) -> None:
        silent = (200, {"Content-Type": "application/x-ndjson", "Content-Length": "1000"}, "")
        self.replies = [silent, lines({"type": "exit", "seq": 1})]
        with self.shorter("SILENT_SECONDS", 0.2):
            self.assertEqual([event["seq"] for event in self.follow()], [1])

    def test_a_stream_that_cannot_be_resumed_raises(self) -> None:
        self.replies = [lines()] * 100
        with self.shorter("AWAY_SECONDS", 0.5), self.assertRaises(ConnectionError):
            self.follow()

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

    def test_a_terminal_is_resumed_behind_its_last_byte(self) -> None:
        shown = {"type": "output", "offset": 10, "data_b64": "YWJj"}
        self.replies = [lines(shown), lines({"type": "exit"})]
        watched = self.client.events("terminal_watch", room_id="a", sandbox="b", terminal_id="c")
        self.assertEqual([event["type"] for event in watched], ["output", "exit"])
        self.assertEqual(self.asked[1][0].partition("?")[2], "after=13")

    def test_pages_are_read_to_the_last(self) -> None:
        self.replies = [ok({"items": [1, 2], "next_cursor": "more"}), ok({"items": [3], "next_cursor": None})]
        self.assertEqual(list(self.client.items("room_list", limit=2)), [1, 2, 3])
        asked = [path for path, _, _ in self.asked]
        self.assertEqual(asked, ["/below/v1/rooms?limit=2", "/below/v1/rooms?limit=2&cursor=more"])
