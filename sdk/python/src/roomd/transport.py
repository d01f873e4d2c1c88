"""Transport of calls to the service, and their retry policy.

A POST has an Idempotency-Key, which its retries keep while its outcome is unknown: nothing is done twice.
"""

import json
import random
import re
import socket
import ssl
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypedDict, TypeVar, cast
from urllib.parse import quote, urlsplit

from ._generated.schemas import Problem
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
from .http1 import BROKEN, MAX_SECONDS, Answer, Body, FileBody, SourceFailed, check_headers, is_repeatable, left_until, send
from .network import Network, Received, Wire
from .trace import UsualTrace, traceparent_of
from .version import VERSION

T = TypeVar("T")


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
    has_json_answer: bool = False
    """Whether a response with another content is from another server."""


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
PASSING = (408, 429, 502, 503, 504)
"""Statuses that are retried if the response has no problem, as from a proxy; problems have `retryable`."""
WAITED = ("barrier_timeout", "reply_timeout")
"""Codes that are the outcome of a wait, and are not retried."""
_INVALID_TARGET = re.compile(r"[^\x21-\x7e]")


class Transport:
    def __init__(self, connection: Connection, network: Network) -> None:
        self.connection = connection
        self.network = network
        parts = urlsplit(connection.url)
        self._tls = ssl.create_default_context(cadata=connection.ca) if parts.scheme == "https" else None
        self._address = (parts.hostname or "", parts.port or (80 if self._tls is None else 443))
        host = parts.netloc.rpartition("@")[2]
        self._host = host if host.isascii() else host.encode("idna").decode()
        self._base = quote(parts.path, safe="/%:@!$&'()*+,;=~")
        self._lock = threading.Lock()
        # At most as many as there were concurrent calls.
        self._idle: list[Wire] = []
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

    async def send(
        self, sent: Sent, read: Callable[[Answer, float], Awaitable[T]], options: CallOptions | None = None
    ) -> T:
        """Sends a call with retries until a successful response is read. Raises the errors of errors.py."""
        options = options or {}
        timeout_ms = longest_wait(options)
        deadline = deadline_of(DEFAULT_TIMEOUT_MS if timeout_ms is None else timeout_ms)
        first_contact_ends = time.monotonic() + FIRST_CONTACT_SECONDS
        given = options.get("idempotency_key")
        key = given or str(uuid.uuid4())
        attempt, may_be_done, has_broken = 0, False, False
        interruption: RoomdError | None = None

        def failure(error: RoomdError) -> RoomdError:
            # An earlier interruption is more important: the call may have been done.
            return interruption if interruption is not None and is_no_connection(error) else error

        while True:
            outcome = await self._try(sent, key, deadline, read, options.get("headers", {}))
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
            if not outcome.is_worth_it or not is_repeatable(sent.body) or attempt == TRIES:
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
            await self.network.pause(pause)

    async def upgrade(self, path: str, headers: Mapping[str, str], seconds: float) -> Answer:
        """The response that switches the connection to another protocol. Raises the errors of errors.py."""
        deadline = time.monotonic() + seconds
        try:
            sent = Sent("GET", path, headers)
            answer = await self._once(await self._wire_for(sent, deadline), sent, Body(None), "", deadline, {})
        except BROKEN as error:
            raise _unreachable(self.connection.url, error, "unreachable") from error
        if answer.status == 101:
            return answer
        problem = await _problem_of(answer, deadline)
        raise self._not_roomd(answer) if problem is None else problem_error(problem)

    def _not_roomd(self, answer: Answer) -> ConnectionError:
        url, where = self.connection.url, answer.headers["location"]
        if 300 <= answer.status < 400 and where:
            told = f"{url} redirects to {where}, which is not followed: set ROOMD_URL to the service's address."
        else:
            told = f"{url} answered {answer.status}, but it is not roomd."
        return ConnectionError(told, "foreign", url, answer.status)

    async def _try(
        self,
        sent: Sent,
        key: str,
        deadline: float,
        read: Callable[[Answer, float], Awaitable[T]],
        headers: Mapping[str, str],
    ) -> tuple[T] | Failed:
        check_headers({**headers, "Idempotency-Key": key})
        # A missing local file is not a fault of the connection.
        async with Body(sent.body) as body:
            wire: Wire | None = None
            try:
                wire = await self._wire_for(sent, deadline)
                answer = await self._once(wire, sent, body, key, deadline, headers)
                is_answer = answer.status < 300 or answer.status in sent.answers
                # A response without a type is the rest of a truncated one: its parsing fails, and it is retried.
                is_foreign = sent.has_json_answer and not answer.is_json and "content-type" in answer.headers
                if is_answer and not is_foreign:
                    return (await read(answer, deadline),)
            except SourceFailed as failed:
                raise failed.error
            except (Cancelled, TimeoutError):
                raise
            except BROKEN as error:
                if isinstance(error, socket.timeout) and time.monotonic() >= deadline:
                    raise TimeoutError("The service has not answered in time.") from error
                fault: ConnectionFault = "unreachable" if wire is None else "broken"
                failure = _unreachable(self.connection.url, error, fault)
                return Failed(failure, is_worth_it=True, has_broken=wire is not None)
        problem = await _problem_of(answer, deadline)
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

    async def _wire_for(self, sent: Sent, deadline: float) -> Wire:
        self.network.check()
        # A body that can be sent only once gets a new connection: the server may have closed an idle one.
        wire = self._idle_wire() if is_repeatable(sent.body) else None
        return await self._new_wire(min(CONNECT_SECONDS, left_until(deadline))) if wire is None else wire

    async def _once(
        self, wire: Wire, sent: Sent, body: Body, key: str, deadline: float, headers: Mapping[str, str]
    ) -> Answer:
        """Returns a response of any status, before its body is read."""
        try:
            target = self._base + sent.path
            if _INVALID_TARGET.search(target):
                raise RoomdError("The path of the request has invalid characters.")
            traceparent = traceparent_of(self.connection.traceparent)
            all_headers = {
                "Host": self._host,
                "Accept-Encoding": "identity",
                "User-Agent": f"roomd-sdk-python/{VERSION}",
                "Accept": "application/json",
                **({} if self.connection.key is None else {"Authorization": f"Bearer {self.connection.key}"}),
                **({"Idempotency-Key": key} if sent.method == "POST" else {}),
                **({} if traceparent is None else {"traceparent": traceparent}),
                **sent.headers,
                **headers,
            }
            await send(wire, sent.method, target, all_headers, body, deadline)
            answer = Answer(Received(wire), self._keep)
            await answer.read_head(deadline)
            self.has_answered = True
            return answer
        except BaseException:
            wire.close()
            raise

    async def _new_wire(self, seconds: float) -> Wire:
        return await self.network.connect(*self._address, self._tls, seconds)

    def _idle_wire(self) -> Wire | None:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                wire = self._idle.pop()
            # A server sends nothing unasked: an idle connection with unread data was closed.
            if wire.is_quiet():
                return wire
            wire.close()

    def _keep(self, wire: Wire) -> None:
        with self._lock:
            if self._keeps:
                self._idle.append(wire)
                return
        wire.close()


def is_moving(error: Exception) -> bool:
    """Whether the room is moving to another host: the call is retried there, however long the move takes."""
    return isinstance(error, ProblemError) and error.code == "room_moving"


_KNOWN: dict[str, Known] = {"idempotency_in_progress": "running", "rate_limited": "turned_away"}


def _known_of(problem: Problem) -> Known:
    if problem["status"] >= 500:
        return "lost"
    # The rate limit is checked before the key.
    return _KNOWN.get(problem["code"], "refused")


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


async def _problem_of(answer: Answer, deadline: float) -> Problem | None:
    """The problem in a response of the service; None if the response is not from the service."""
    is_problem = answer.headers.get_content_type() == "application/problem+json"
    length = answer.headers.get("content-length", "0")
    if not is_problem or not length.isdigit() or int(length) > MAX_PROBLEM_BYTES:
        answer.close()
        return None
    try:
        return json.loads(await answer.all(deadline))
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
