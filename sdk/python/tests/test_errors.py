"""Errors of calls: problems of the service with all their data, and failed connections."""

import asyncio
import builtins
import copy
import os
import pickle
import socket
import threading
import time
import unittest
from typing import Any
from unittest import mock

from roomd import (
    AsyncRoomd,
    AuthenticationError,
    Cancel,
    Cancelled,
    ConflictError,
    ConnectionError,
    InvalidRequestError,
    NotFoundError,
    ProblemError,
    Roomd,
    RoomdError,
    StreamError,
    TimeoutError,
)
from roomd.errors import problem_error

from .surroundings import TLS_CERT, TLS_URL


class ProblemTest(unittest.TestCase):
    def setUp(self) -> None:
        self.roomd = Roomd()
        self.addCleanup(self.roomd.close)

    def test_has_its_code_and_all_invalid_fields(self) -> None:
        with self.assertRaises(InvalidRequestError) as refused:
            self.roomd.client.call("room_create", room_id="no name", ttl_seconds=-1)
        error = refused.exception
        self.assertEqual((error.code, error.status, error.retryable), ("validation_failed", 422, False))
        self.assertEqual(sorted(each["field"] for each in error.errors), ["room_id", "ttl_seconds"])
        self.assertTrue(error.request_id)
        self.assertIsInstance(error.details, dict)
        self.assertTrue(str(error).startswith(error.problem["detail"]))

    def test_has_the_class_of_its_status(self) -> None:
        with self.assertRaises(NotFoundError) as missing:
            self.roomd.rooms.open("none").get()
        self.assertEqual(missing.exception.code, "room_not_found")
        with self.roomd.rooms.create("py-twice"), self.assertRaises(ConflictError):
            self.roomd.rooms.create("py-twice")
        with Roomd(api_key="key-none") as stranger, self.assertRaises(AuthenticationError):
            stranger.rooms.open("x").get()
        with self.assertRaises(ProblemError):
            self.roomd.rooms.open("a/b").get()

    def test_a_call_without_a_field_of_its_path_raises(self) -> None:
        with self.assertRaises(TypeError):
            self.roomd.client.call("room_get")  # type: ignore[call-overload] # tested here


class ProcessesTest(unittest.TestCase):
    def test_errors_can_be_pickled_and_copied(self) -> None:
        for status in (400, 401, 403, 404, 409, 410, 412, 429, 503):
            told: Any = {"status": status, "code": "a_code", "detail": "Wrong.", "hint": "Mend it.", "retryable": True}
            error = problem_error(told)
            for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
                self.assertIs(type(other), type(error))
                self.assertEqual((other.problem, str(other)), (told, "Wrong. Mend it."))
        for event in ({"code": "a_code", "detail": "Wrong.", "retryable": True}, {"code": "shutting_down"}):
            ended = StreamError(event)
            other = pickle.loads(pickle.dumps(ended))
            self.assertEqual((str(other), other.code, other.retryable), (str(ended), ended.code, True))
        self.assertTrue(issubclass(ConnectionError, builtins.ConnectionError))
        for plain in (RoomdError("a"), ConnectionError("a"), TimeoutError("a"), Cancelled("a")):
            self.assertEqual(str(pickle.loads(pickle.dumps(plain))), "a")


class UnreachableTest(unittest.TestCase):
    def test_the_timeout_of_the_caller_is_kept(self) -> None:
        with Roomd() as roomd, roomd.rooms.create("py-late") as room, self.assertRaises(TimeoutError) as late:
            room.agent("a").subscribe([])
            roomd.client.call("agent_wait", {"timeout_ms": 200}, room_id=room.id, agent_id="a", wait_ms=20_000)
        self.assertIsInstance(late.exception, builtins.TimeoutError)


class CancelTest(unittest.TestCase):
    def test_aborts_a_pending_connection(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            # The server listens, and never answers the TLS handshake.
            roomd = self.enterContext(Roomd(url=f"https://127.0.0.1:{server.getsockname()[1]}"))
            cancel = Cancel()
            threading.Timer(0.3, cancel.cancel).start()
            started = time.monotonic()
            with cancel, self.assertRaises(Cancelled):
                roomd.client.call("health")
            self.assertLess(time.monotonic() - started, 5)


class TlsTest(unittest.TestCase):
    def test_an_unknown_certificate_is_not_trusted(self) -> None:
        with Roomd(url=TLS_URL) as roomd, self.assertRaises(ConnectionError) as failed:
            roomd.client.call("health", {"timeout_ms": 300})
        self.assertIn("ROOMD_CA_CERT", str(failed.exception))

    def test_a_given_certificate_is_trusted(self) -> None:
        with open(TLS_CERT, encoding="utf-8") as file:
            ca = file.read()
        with Roomd(url=TLS_URL, ca=ca) as roomd:
            for _ in range(3):
                self.assertIn("status", roomd.client.call("health"))
            self.assertEqual(len(roomd.client._transport._idle), 1)
        with mock.patch.dict(os.environ, {"ROOMD_CA_CERT": TLS_CERT}), Roomd(url=TLS_URL) as roomd:
            self.assertIn("status", roomd.client.call("health"))

    def test_of_asyncio_is_trusted_only_if_it_is_given(self) -> None:
        async def run() -> None:
            async with AsyncRoomd(url=TLS_URL) as roomd:
                with self.assertRaises(ConnectionError) as failed:
                    await roomd.client.call("health", {"timeout_ms": 300})
                self.assertEqual(failed.exception.fault, "untrusted")
            with open(TLS_CERT, encoding="utf-8") as file:
                ca = file.read()
            async with AsyncRoomd(url=TLS_URL, ca=ca) as roomd:
                for _ in range(3):
                    self.assertIn("status", await roomd.client.call("health"))
                self.assertEqual(len(roomd._client._transport._idle), 1)

        asyncio.run(run())
