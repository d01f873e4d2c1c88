"""Owns the one way a call goes to the service, and the one policy by which it is tried again.

A POST has an Idempotency-Key, which it keeps while nobody knows whether it was carried out: nothing is done twice.
"""

import http.client
import json
import os
import random
import select
import socket
import ssl
import threading
import time
import uuid
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypedDict, TypeVar
from urllib.parse import urlsplit

from ._generated.schemas import Problem
from .cancel import current
from .errors import Cancelled, ConnectionError, RoomdError, TimeoutError, problem_error
from .version import VERSION

T = TypeVar("T")

FileBody = str | bytes | bytearray | memoryview | os.PathLike[str] | Iterable[bytes]
"""What a file is sent from; a path is a file of this machine. An open file or a generator is sent once."""


class CallOptions(TypedDict, total=False):
    timeout_ms: int
    """For the whole call with all its tries; 10 minutes if absent."""
    idempotency_key: str
    """In place of the one that is made for each POST: the same key does nothing twice, also from another process."""
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Connection:
    """Where the service is, and how it is spoken to."""

    url: str
    """Without a slash at its end."""
    key: str | None
    ca: str | None
    """Certificates to trust, as PEM, in place of the system's."""


@dataclass(frozen=True)
class Sent:
    method: str
    path: str
    """With its query."""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: FileBody | None = None
    answers: tuple[int, ...] = ()
    """Statuses that are as good an answer as a success."""


Known = Literal["lost", "running", "turned_away", "refused"]
"""What is known of a try that failed: nothing; that an earlier one is still carried out; that this one was not looked
at; that nothing was done, and that this answer is kept under its key."""


@dataclass(frozen=True)
class Failed:
    error: RoomdError
    is_worth_it: bool
    """Whether another try may succeed."""
    known: Known = "lost"
    after_seconds: float | None = None


TRIES = 6
FIRST_PAUSE_SECONDS, MOST_PAUSE_SECONDS = 0.25, 8.0
CONNECT_SECONDS = 15.0
DEFAULT_TIMEOUT_MS = 600_000
MOST_PROBLEM_BYTES = 256 * 1024
PART_BYTES = 64 * 1024
PASSING = (408, 429, 502, 503, 504)
"""Of whoever stands before the service, or of the service without words: its own refusals say for themselves."""
WAITED = ("barrier_timeout", "reply_timeout")
"""The outcome of a wait."""
BROKEN = (OSError, http.client.HTTPException)
"""What fails with these, does so because of the connection, or of what answers."""


class Answer:
    """The beginning of an answer, and its body as it is read. It must be read to its end, or closed."""

    def __init__(self, way: http.client.HTTPConnection, wire: socket.socket, keep: Callable[[], None]) -> None:
        self._way = way
        self._wire = wire
        self._keep = keep
        self._response = way.getresponse()
        self._is_over = False
        self.status = self._response.status
        self.headers = self._response.headers

    @property
    def is_json(self) -> bool:
        return self.headers.get_content_type() == "application/json"

    def parts(self, seconds: float | None = None, deadline: float | None = None) -> Generator[bytes, None, None]:
        """The body as it comes, each part within so many seconds. Raises ConnectionError when it ends early."""
        if self._is_over:
            raise RoomdError("What was read or closed cannot be read again.")
        response = self._response
        try:
            while not self._is_over:
                self._wire.settimeout(seconds if deadline is None else _left(deadline))
                with current().breaking(self._wire):
                    part = response.read1(PART_BYTES)
                if part:
                    yield part
                    continue
                if response.length:
                    raise ConnectionError("The connection broke before the answer was complete.")
                self._finish()
        except BROKEN as error:
            if isinstance(error, RoomdError):
                raise
            if isinstance(error, socket.timeout):
                if deadline is None:
                    raise ConnectionError(f"The connection broke: nothing came for {seconds:g} s.") from error
                raise TimeoutError("The service has not answered in time.") from error
            raise ConnectionError("The connection broke before the answer was complete.") from error
        finally:
            self.close()

    def all(self, deadline: float) -> bytes:
        return b"".join(self.parts(deadline=deadline))

    def close(self) -> None:
        """Ends the connection, unless all was read."""
        if self._is_over:
            return
        self._is_over = True
        self._response.close()
        self._way.close()

    def taken_over(self) -> tuple[socket.socket, bytes]:
        """The connection itself, and what of it was read ahead."""
        self._is_over = True
        self._wire.setblocking(False)
        try:
            early = self._response.fp.peek()
        except ssl.SSLWantReadError:
            early = b""
        # The reader only; the connection stays.
        self._response.close()
        return self._wire, early

    def _finish(self) -> None:
        self._is_over = True
        will_close = self._response.will_close
        self._response.close()
        if will_close:
            self._way.close()
        else:
            self._keep()


class Transport:
    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        parts = urlsplit(connection.url)
        self._address = (parts.hostname or "", parts.port)
        self._base = parts.path
        self._tls = ssl.create_default_context(cadata=connection.ca) if parts.scheme == "https" else None
        self._lock = threading.Lock()
        # As many as calls were made at once; a thread that ends leaves none behind.
        self._idle: list[http.client.HTTPConnection] = []
        self._keeps = True

    def close(self) -> None:
        """Ends the connections that nothing uses, and from now on each as soon as its call has ended."""
        with self._lock:
            self._keeps = False
            idle, self._idle = self._idle, []
        for each in idle:
            each.close()

    def send(self, sent: Sent, read: Callable[[Answer, float], T], options: CallOptions | None = None) -> T:
        """Sends a call until its answer, a success, is read by the deadline. Raises what errors.py has."""
        options = options or {}
        deadline = time.monotonic() + options.get("timeout_ms", DEFAULT_TIMEOUT_MS) / 1000
        given = options.get("idempotency_key")
        key = given or str(uuid.uuid4())
        is_repeatable = _is_repeatable(sent.body)
        attempt, may_be_done = 0, False
        while True:
            outcome = self._try(sent, key, deadline, read, options.get("headers", {}))
            if not isinstance(outcome, Failed):
                return outcome[0]
            # What is carried out is waited for, however long it takes.
            attempt += outcome.known != "running"
            if not outcome.is_worth_it or not is_repeatable or attempt == TRIES:
                raise outcome.error
            if outcome.known == "lost":
                may_be_done = True
            elif outcome.known == "refused" or (outcome.known == "turned_away" and not may_be_done):
                key, may_be_done = given or str(uuid.uuid4()), False
            pause = outcome.after_seconds
            if pause is None:
                pause = random.uniform(0, min(FIRST_PAUSE_SECONDS * 2**attempt, MOST_PAUSE_SECONDS))
            if time.monotonic() + pause > deadline:
                raise outcome.error
            current().pause(pause)

    def upgrade(self, path: str, headers: Mapping[str, str], seconds: float) -> Answer:
        """The answer to a call by which the connection is no longer of HTTP. Raises what errors.py has."""
        deadline = time.monotonic() + seconds
        try:
            answer = self._once(Sent("GET", path, headers), None, None, "", deadline, {})
        except BROKEN as error:
            raise _unreachable(self.connection.url, error) from error
        if answer.status == 101:
            return answer
        problem = _problem_of(answer, deadline)
        if problem is None:
            raise ConnectionError(f"{self.connection.url} answered {answer.status}, but it is not roomd.")
        raise problem_error(problem)

    def _try(
        self,
        sent: Sent,
        key: str,
        deadline: float,
        read: Callable[[Answer, float], T],
        headers: Mapping[str, str],
    ) -> tuple[T] | Failed:
        with ExitStack() as opened:
            # A file of this machine that is missing is no fault of the connection.
            body, length = _opened(sent.body, opened)
            try:
                answer = self._once(sent, body, length, key, deadline, headers)
                if answer.status < 300 or (answer.status in sent.answers and answer.is_json):
                    return (read(answer, deadline),)
            except (Cancelled, TimeoutError):
                raise
            except BROKEN as error:
                if isinstance(error, socket.timeout) and time.monotonic() >= deadline:
                    raise TimeoutError("The service has not answered in time.") from error
                return Failed(_unreachable(self.connection.url, error), is_worth_it=True)
        problem = _problem_of(answer, deadline)
        after = _retry_after(answer)
        if problem is None:
            wrong = ConnectionError(f"{self.connection.url} answered {answer.status}, but it is not roomd.")
            return Failed(wrong, is_worth_it=answer.status in PASSING, after_seconds=after)
        is_worth_it = problem["retryable"] and problem["code"] not in WAITED
        return Failed(problem_error(problem), is_worth_it, _known_of(problem), after)

    def _once(
        self,
        sent: Sent,
        body: Any,
        length: int | None,
        key: str,
        deadline: float,
        headers: Mapping[str, str],
    ) -> Answer:
        """Returns the beginning of an answer, whatever it is."""
        all_headers = {
            "User-Agent": f"roomd-sdk-python/{VERSION}",
            "Accept": "application/json",
            **({} if self.connection.key is None else {"Authorization": f"Bearer {self.connection.key}"}),
            **({"Idempotency-Key": key} if sent.method == "POST" else {}),
            **({} if length is None else {"Content-Length": str(length)}),
            **sent.headers,
            **headers,
        }
        current().check()
        # What is sent once gets a connection that nobody has left.
        way = self._idle_way() if _is_repeatable(sent.body) else None
        if way is None:
            way = self._new_way(min(CONNECT_SECONDS, _left(deadline)))
        try:
            wire = way.sock
            wire.settimeout(_left(deadline))
            with current().breaking(wire):
                try:
                    way.request(sent.method, self._base + sent.path, body, all_headers)
                except (BrokenPipeError, ConnectionResetError):
                    # The service may have answered before it had read all.
                    pass
                wire.settimeout(_left(deadline))
                return Answer(way, wire, partial(self._keep, way))
        except BaseException:
            way.close()
            raise

    def _new_way(self, seconds: float) -> http.client.HTTPConnection:
        host, port = self._address
        kind = http.client.HTTPConnection if self._tls is None else http.client.HTTPSConnection
        way = kind(host, port)
        wire = _connected(host, way.port, seconds)
        if self._tls is not None:
            wire = self._tls.wrap_socket(wire, server_hostname=host, do_handshake_on_connect=False)
            try:
                with current().breaking(wire):
                    wire.do_handshake()
            except BaseException:
                wire.close()
                raise
        way.sock = wire
        return way

    def _idle_way(self) -> http.client.HTTPConnection | None:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                way = self._idle.pop()
            # The other side says nothing of its own, but that it has gone.
            if way.sock is not None and not await_ready(way.sock, to_write=False, seconds=0):
                return way
            way.close()

    def _keep(self, way: http.client.HTTPConnection) -> None:
        with self._lock:
            if self._keeps:
                self._idle.append(way)
                return
        way.close()


def _connected(host: str, port: int, seconds: float) -> socket.socket:
    """To the first of the host's addresses where somebody listens."""
    wrong: OSError | None = None
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        wire = socket.socket(family, kind, protocol)
        try:
            wire.settimeout(seconds)
            wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with current().breaking(wire):
                wire.connect(address)
            return wire
        except OSError as error:
            wire.close()
            wrong = error
        except BaseException:
            wire.close()
            raise
    raise wrong or OSError(f"{host} has no address")


_KNOWN: dict[str, Known] = {"idempotency_in_progress": "running", "rate_limited": "turned_away"}


def _known_of(problem: Problem) -> Known:
    if problem["status"] >= 500:
        return "lost"
    # The rate is looked at before the key is.
    return _KNOWN.get(problem["code"], "refused")


def _left(deadline: float) -> float:
    # A timeout of 0 would mean not to wait at all.
    return max(0.001, deadline - time.monotonic())


def await_ready(wire: socket.socket, to_write: bool, seconds: float | None = None) -> bool:
    """Waits until there is something to read, or place to write; false when there is not in time."""
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(wire, select.POLLOUT if to_write else select.POLLIN)
        return bool(poll.poll(None if seconds is None else seconds * 1000))
    readers, writers = ([], [wire]) if to_write else ([wire], [])
    return any(select.select(readers, writers, [], seconds))


def _is_repeatable(body: FileBody | None) -> bool:
    return body is None or isinstance(body, (str, bytes, bytearray, memoryview, os.PathLike))


def _opened(body: FileBody | None, opened: ExitStack) -> tuple[Any, int | None]:
    """What is written, and its length where that is known; without one it is sent in chunks."""
    if isinstance(body, str):
        body = body.encode()
    if isinstance(body, memoryview):
        body = body.tobytes()
    if isinstance(body, (bytes, bytearray)):
        return body, len(body)
    if isinstance(body, os.PathLike):
        file = opened.enter_context(open(body, "rb"))
        return file, os.fstat(file.fileno()).st_size
    return body, None


def _problem_of(answer: Answer, deadline: float) -> Problem | None:
    """What the service says is wrong; None where it is not the service that answers."""
    is_problem = answer.headers.get_content_type() == "application/problem+json"
    length = answer.headers.get("content-length", "0")
    if not is_problem or not length.isdigit() or int(length) > MOST_PROBLEM_BYTES:
        answer.close()
        return None
    try:
        return json.loads(answer.all(deadline))
    except (ConnectionError, ValueError):
        return None


def _retry_after(answer: Answer) -> float | None:
    try:
        return max(0.0, float(answer.headers["retry-after"]))
    except (TypeError, ValueError):
        return None


def _unreachable(url: str, error: Exception) -> RoomdError:
    if isinstance(error, RoomdError):
        return error
    if isinstance(error, ssl.SSLCertVerificationError):
        wrong = f"The certificate of {url} is not trusted ({error.verify_message})."
        made = ConnectionError(f"{wrong} Put the service's certificate file in ROOMD_CA_CERT.")
    else:
        said = str(error) or type(error).__name__
        made = ConnectionError(f"No service answers at {url} ({said}). Is it running, and is ROOMD_URL its address?")
    made.__cause__ = error
    return made
