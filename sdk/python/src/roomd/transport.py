"""Transport of calls to the service, and their retry policy.

A POST has an Idempotency-Key, which its retries keep while its outcome is unknown: nothing is done twice.
"""

import http.client
import json
import os
import random
import re
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
from typing import Any, Literal, TypedDict, TypeVar, cast
from urllib.parse import urlsplit

from ._generated.schemas import Problem
from .cancel import current
from .errors import (
    Cancelled,
    ConnectionError,
    ConnectionFault,
    NotFoundError,
    ProblemError,
    RoomdError,
    TimeoutError,
    problem_error,
)
from .trace import UsualTrace, traceparent_of
from .version import VERSION

T = TypeVar("T")

FileBody = str | bytes | bytearray | memoryview | os.PathLike[str] | Iterable[bytes]
"""Content of a file to send; a path is a local file. An open file or a generator can be read only once, so it is not retried."""


class CallOptions(TypedDict, total=False):
    """Options of every call."""

    wait_ms: float
    """Longest wait for the method with all its calls and attempts, in ms; 10 minutes for each call by default.

    Then TimeoutError is raised. It bounds each page of a list, and the start of a streamed file."""
    timeout_ms: float
    """Alias of `wait_ms`. With `exec` and `start` of a sandbox it is the time limit of the command instead."""
    idempotency_key: str
    """Replaces the key that is generated for each POST: calls with the same key have one effect, even from several processes.

    A method that makes several calls appends -1, -2 and so on."""
    headers: Mapping[str, str]
    """Additional headers of the request."""


@dataclass(frozen=True)
class Connection:
    """Address of the service, credentials and trust."""

    url: str
    """Without a trailing slash."""
    key: str | None
    ca: str | None
    """Certificates to trust, as PEM, in place of the system's."""
    traceparent: UsualTrace | None = None
    """Default trace context of calls."""


@dataclass(frozen=True)
class Sent:
    method: str
    path: str
    """Including the query."""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: FileBody | None = None
    answers: tuple[int, ...] = ()
    """Error statuses whose response counts as a success."""


Known = Literal["lost", "running", "turned_away", "refused"]
"""Knowledge about a failed attempt: none; an earlier attempt is still in progress; this one was rejected before
processing; nothing was done, and this answer is stored under its key."""


@dataclass(frozen=True)
class Failed:
    error: RoomdError
    is_worth_it: bool
    """Whether another attempt may succeed."""
    known: Known = "lost"
    after_seconds: float | None = None
    has_broken: bool = False
    """Whether the connection broke after the call was sent: it may have been executed."""


TRIES = 6
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.25, 8.0
FIRST_CONTACT_SECONDS = 1.0
"""Time for connection attempts of a client that has never had a response: its URL may be wrong."""
CONNECT_SECONDS = 15.0
DEFAULT_TIMEOUT_MS = 600_000
MAX_PROBLEM_BYTES = 256 * 1024
PART_BYTES = 64 * 1024
PASSING = (408, 429, 502, 503, 504)
"""Statuses that are retried if the response has no problem, as from a proxy; problems have `retryable`."""
WAITED = ("barrier_timeout", "reply_timeout")
"""Codes that are the outcome of a wait, and are not retried."""
BROKEN = (OSError, http.client.HTTPException)
"""Exceptions that the connection or the server causes."""
MAX_SECONDS = 86_400.0
"""Longest single wait: sockets do not support longer timeouts."""
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


class _SourceFailed(Exception):
    """The request body could not be read: not a fault of the connection, whatever the exception."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


class Answer:
    """Status and headers of a response, and its body as it arrives. It must be read to its end, or closed."""

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

    def parts(
        self, seconds: Callable[[], float] | None = None, deadline: float | None = None
    ) -> Generator[bytes, None, None]:
        """Yields the body as it arrives, with a timeout for each part. Raises ConnectionError if it ends early."""
        if self._is_over:
            raise RoomdError("The answer was read or closed, and cannot be read again.")
        response, silent = self._response, 0.0
        try:
            while not self._is_over:
                if deadline is not None:
                    self._wire.settimeout(_left(deadline))
                elif seconds is not None:
                    silent = max(0.001, seconds())
                    self._wire.settimeout(silent)
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
                    raise ConnectionError(f"The connection broke: nothing was received for {silent:g} s.") from error
                raise TimeoutError("The service has not answered in time.") from error
            raise ConnectionError("The connection broke before the answer was complete.") from error
        finally:
            self.close()

    def all(self, deadline: float) -> bytes:
        return b"".join(self.parts(deadline=deadline))

    def close(self) -> None:
        """Closes the connection, unless all was read."""
        if self._is_over:
            return
        self._is_over = True
        self._response.close()
        self._way.close()

    def taken_over(self) -> tuple[socket.socket, bytes]:
        """The connection itself, and the bytes that were read ahead."""
        self._is_over = True
        self._wire.setblocking(False)
        try:
            early = self._response.fp.peek()
        except ssl.SSLWantReadError:
            early = b""
        # Closes the reader only; the connection stays open.
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
        # At most as many as there were concurrent calls; a thread that ends leaves none behind.
        self._idle: list[http.client.HTTPConnection] = []
        self._keeps = True
        self.has_answered = False
        """Whether any response has arrived: then the URL leads to a server."""

    def close(self) -> None:
        """Closes idle connections, and from now on each connection once its call has ended."""
        with self._lock:
            self._keeps = False
            idle, self._idle = self._idle, []
        for each in idle:
            each.close()

    def send(self, sent: Sent, read: Callable[[Answer, float], T], options: CallOptions | None = None) -> T:
        """Sends a call with retries until a successful response is read. Raises the errors of errors.py."""
        options = options or {}
        timeout_ms = longest_wait(options)
        deadline = deadline_of(DEFAULT_TIMEOUT_MS if timeout_ms is None else timeout_ms)
        first_contact_ends = time.monotonic() + FIRST_CONTACT_SECONDS
        given = options.get("idempotency_key")
        key = given or str(uuid.uuid4())
        is_repeatable = _is_repeatable(sent.body)
        attempt, may_be_done, has_broken = 0, False, False
        interruption: RoomdError | None = None

        def failure(error: RoomdError) -> RoomdError:
            # An earlier interruption is more important: the call may have been done.
            return interruption if interruption is not None and is_no_connection(error) else error

        while True:
            outcome = self._try(sent, key, deadline, read, options.get("headers", {}))
            if not isinstance(outcome, Failed):
                return outcome[0]
            if has_broken and sent.method == "DELETE" and isinstance(outcome.error, NotFoundError):
                # An earlier attempt has done it, and its response was lost.
                return cast(T, {})
            has_broken = has_broken or outcome.has_broken
            if interruption is None and isinstance(outcome.error, ConnectionError) and outcome.error.fault == "broken":
                interruption = outcome.error
            # A call in progress is awaited, however long it takes.
            attempt += outcome.known != "running" and not is_moving(outcome.error)
            if not outcome.is_worth_it or not is_repeatable or attempt == TRIES:
                raise failure(outcome.error)
            if outcome.known == "lost":
                may_be_done = True
            elif outcome.known == "refused" or (outcome.known == "turned_away" and not may_be_done):
                key, may_be_done = given or str(uuid.uuid4()), False
            pause = outcome.after_seconds
            if pause is None:
                pause = random.uniform(0, min(FIRST_PAUSE_SECONDS * 2**attempt, MAX_PAUSE_SECONDS))
            if is_no_connection(outcome.error) and not self.has_answered and not has_broken:
                left = first_contact_ends - time.monotonic()
                if left <= 0:
                    raise failure(outcome.error)
                pause = min(pause, left)
            if time.monotonic() + pause > deadline:
                raise failure(outcome.error)
            current().pause(pause)

    def upgrade(self, path: str, headers: Mapping[str, str], seconds: float) -> Answer:
        """The response that switches the connection to another protocol. Raises the errors of errors.py."""
        deadline = time.monotonic() + seconds
        try:
            sent = Sent("GET", path, headers)
            answer = self._once(self._way_for(sent, deadline), sent, None, None, "", deadline, {})
        except BROKEN as error:
            raise _unreachable(self.connection.url, error, "unreachable") from error
        if answer.status == 101:
            return answer
        problem = _problem_of(answer, deadline)
        raise self._not_roomd(answer) if problem is None else problem_error(problem)

    def _not_roomd(self, answer: Answer) -> ConnectionError:
        url, where = self.connection.url, answer.headers["location"]
        if 300 <= answer.status < 400 and where:
            told = f"{url} redirects to {where}, which is not followed: set ROOMD_URL to the service's address."
        else:
            told = f"{url} answered {answer.status}, but it is not roomd."
        return ConnectionError(told, "foreign", url, answer.status)

    def _try(
        self,
        sent: Sent,
        key: str,
        deadline: float,
        read: Callable[[Answer, float], T],
        headers: Mapping[str, str],
    ) -> tuple[T] | Failed:
        _check_headers({**headers, "Idempotency-Key": key})
        with ExitStack() as opened:
            # A missing local file is not a fault of the connection.
            body, length = _opened(sent.body, opened)
            way: http.client.HTTPConnection | None = None
            try:
                way = self._way_for(sent, deadline)
                answer = self._once(way, sent, body, length, key, deadline, headers)
                if answer.status < 300 or (answer.status in sent.answers and answer.is_json):
                    return (read(answer, deadline),)
            except _SourceFailed as failed:
                raise failed.error
            except (Cancelled, TimeoutError):
                raise
            except BROKEN as error:
                if isinstance(error, socket.timeout) and time.monotonic() >= deadline:
                    raise TimeoutError("The service has not answered in time.") from error
                fault: ConnectionFault = "unreachable" if way is None else "broken"
                failure = _unreachable(self.connection.url, error, fault)
                return Failed(failure, is_worth_it=True, has_broken=way is not None)
        problem = _problem_of(answer, deadline)
        after = _retry_after(answer)
        if problem is None:
            # A proxy may have forwarded the call before it failed.
            was_passed_on = answer.status in (502, 504)
            return Failed(
                self._not_roomd(answer),
                is_worth_it=answer.status in PASSING,
                after_seconds=after,
                has_broken=was_passed_on,
            )
        is_worth_it = problem["retryable"] and problem["code"] not in WAITED
        return Failed(problem_error(problem), is_worth_it, _known_of(problem), after)

    def _way_for(self, sent: Sent, deadline: float) -> http.client.HTTPConnection:
        current().check()
        # A body that can be sent only once gets a new connection: the server may have closed an idle one.
        way = self._idle_way() if _is_repeatable(sent.body) else None
        return self._new_way(min(CONNECT_SECONDS, _left(deadline))) if way is None else way

    def _once(
        self,
        way: http.client.HTTPConnection,
        sent: Sent,
        body: Any,
        length: int | None,
        key: str,
        deadline: float,
        headers: Mapping[str, str],
    ) -> Answer:
        """Returns a response of any status, before its body is read."""
        try:
            traceparent = traceparent_of(self.connection.traceparent)
            all_headers = {
                "User-Agent": f"roomd-sdk-python/{VERSION}",
                "Accept": "application/json",
                **({} if self.connection.key is None else {"Authorization": f"Bearer {self.connection.key}"}),
                **({"Idempotency-Key": key} if sent.method == "POST" else {}),
                **({} if traceparent is None else {"traceparent": traceparent}),
                **({} if length is None else {"Content-Length": str(length)}),
                **sent.headers,
                **headers,
            }
            wire = way.sock
            wire.settimeout(_left(deadline))
            with current().breaking(wire):
                try:
                    way.request(sent.method, self._base + sent.path, body, all_headers)
                except (BrokenPipeError, ConnectionResetError):
                    # The service may have responded before it had read the whole body.
                    pass
                wire.settimeout(_left(deadline))
                answer = Answer(way, wire, partial(self._keep, way))
                self.has_answered = True
                return answer
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
            # A server sends nothing unasked: a readable idle connection was closed.
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
    """Connects to the first of the host's addresses that accepts."""
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


def is_moving(error: Exception) -> bool:
    """Whether the room is moving to another host: the call is retried there, however long the move takes."""
    return isinstance(error, ProblemError) and error.code == "room_moving"


_KNOWN: dict[str, Known] = {"idempotency_in_progress": "running", "rate_limited": "turned_away"}


def _known_of(problem: Problem) -> Known:
    if problem["status"] >= 500:
        return "lost"
    # The rate limit is checked before the key.
    return _KNOWN.get(problem["code"], "refused")


def _left(deadline: float) -> float:
    # A timeout of 0 would make the socket non-blocking.
    return max(0.001, min(deadline - time.monotonic(), MAX_SECONDS))


def deadline_of(timeout_ms: float) -> float:
    """Monotonic time after `timeout_ms`; it may be infinite."""
    return time.monotonic() + max(0.0, timeout_ms) / 1000


def longest_wait(options: CallOptions) -> float | None:
    """The longest wait that these options allow, in ms; None for the default."""
    wait_ms = options.get("wait_ms")
    return options.get("timeout_ms") if wait_ms is None else wait_ms


class Calls:
    """Options for each call of one method: a common time limit, and a separate idempotency key each."""

    def __init__(self, options: CallOptions) -> None:
        self._options = options
        self._count = 0
        timeout_ms = longest_wait(options)
        self._deadline = None if timeout_ms is None else deadline_of(timeout_ms)

    @property
    def left_ms(self) -> float | None:
        """Remaining time; None without a limit. Raises a TimeoutError once it has expired."""
        if self._deadline is None:
            return None
        left = (self._deadline - time.monotonic()) * 1000
        if left <= 0:
            raise TimeoutError(f"It was not done within {longest_wait(self._options) or 0:g} ms.")
        return left

    def next(self) -> CallOptions:
        """Options of the next call. Raises a TimeoutError if no time is left."""
        self._count += 1
        made: CallOptions = {"headers": self._options.get("headers", {})}
        if (left := self.left_ms) is not None:
            made["wait_ms"] = left
        if (key := self._options.get("idempotency_key")) is not None:
            made["idempotency_key"] = f"{key}-{self._count}"
        return made


def _check_headers(headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise RoomdError(f"The header {name!r} has invalid characters.")


def await_ready(wire: socket.socket, to_write: bool, seconds: float | None = None) -> bool:
    """Waits until the socket is readable, or writable; false on timeout."""
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(wire, select.POLLOUT if to_write else select.POLLIN)
        return bool(poll.poll(None if seconds is None else seconds * 1000))
    readers, writers = ([], [wire]) if to_write else ([wire], [])
    return any(select.select(readers, writers, [], seconds))


def _is_repeatable(body: FileBody | None) -> bool:
    return body is None or isinstance(body, (str, bytes, bytearray, memoryview, os.PathLike))


def _opened(body: FileBody | None, opened: ExitStack) -> tuple[Any, int | None]:
    """The body to write, and its length if it is known; without a length it is sent in chunks."""
    if isinstance(body, str):
        body = body.encode()
    if isinstance(body, memoryview):
        body = body.tobytes()
    if isinstance(body, (bytes, bytearray)):
        return body, len(body)
    if isinstance(body, os.PathLike):
        file = opened.enter_context(open(body, "rb"))
        length = os.fstat(file.fileno()).st_size
        return _read_from(_parts_of_file(file, length)), length
    if body is None:
        return None, None
    return _read_from(cast(Iterable[Any], _parts_of_file(body, None) if hasattr(body, "read") else body)), None


def _read_from(source: Iterable[Any]) -> Generator[bytes, None, None]:
    """Yields the parts of a source. Wraps its exceptions, to distinguish them from those of the connection."""
    try:
        for part in source:
            yield part.encode() if isinstance(part, str) else part
    except Exception as error:
        raise _SourceFailed(error) from error


def _parts_of_file(file: Any, length: int | None) -> Generator[Any, None, None]:
    """Yields a file to its end, or exactly `length` bytes: it may grow while it is sent."""
    left = length
    while left is None or left > 0:
        part = file.read(PART_BYTES if left is None else min(PART_BYTES, left))
        if not part:
            if left:
                raise RoomdError("The file became shorter while it was sent.")
            return
        left = None if left is None else left - len(part)
        yield part


def _problem_of(answer: Answer, deadline: float) -> Problem | None:
    """The problem in a response of the service; None if the response is not from the service."""
    is_problem = answer.headers.get_content_type() == "application/problem+json"
    length = answer.headers.get("content-length", "0")
    if not is_problem or not length.isdigit() or int(length) > MAX_PROBLEM_BYTES:
        answer.close()
        return None
    try:
        return json.loads(answer.all(deadline))
    except (ConnectionError, ValueError):
        return None


def _retry_after(answer: Answer) -> float | None:
    try:
        return max(0.0, min(float(answer.headers["retry-after"]), MAX_SECONDS))
    except (TypeError, ValueError):
        return None


def is_no_connection(error: Exception) -> bool:
    """Whether no connection was established: the URL may be wrong, or the service is down."""
    return isinstance(error, ConnectionError) and error.fault in ("unreachable", "untrusted")


def _unreachable(url: str, error: Exception, fault: ConnectionFault) -> RoomdError:
    if isinstance(error, RoomdError):
        return error
    if isinstance(error, ssl.SSLCertVerificationError):
        wrong = f"The certificate of {url} is not trusted ({error.verify_message})."
        made = ConnectionError(f"{wrong} Put the service's certificate file in ROOMD_CA_CERT.", "untrusted", url)
    elif fault == "broken":
        said = str(error) or type(error).__name__
        told = f"The connection to {url} broke before the answer came ({said}). The call may or may not have been done."
        made = ConnectionError(told, fault, url)
    else:
        remedy = "Check that roomd is running there, and that ROOMD_URL (or the option url) is its address."
        made = ConnectionError(f"No service answers at {url}: {_reason(url, error)}. {remedy}", fault, url)
    made.__cause__ = error
    return made


def _reason(url: str, error: Exception) -> str:
    """Reason of a common error, in the words of both SDKs."""
    if isinstance(error, ConnectionRefusedError):
        return "the connection is refused"
    if isinstance(error, socket.gaierror):
        return f"the name {urlsplit(url).hostname} does not resolve"
    if isinstance(error, socket.timeout):
        return f"no connection within {CONNECT_SECONDS:g} s"
    return str(error) or type(error).__name__
