"""Calls of the operations of the HTTP interface by name, with types from the OpenAPI document."""

import base64
import hashlib
import json
import os
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias, cast, overload
from urllib.parse import quote, urlencode, urlsplit

from ._generated.operations import OPERATIONS, Operation
from ._generated.schemas import WrittenFile, WrittenSandboxFile
from .coroutines import blocking, iterating
from .errors import ConnectionError, RoomdError
from .http1 import Answer, FileBody
from .network import Asyncio, Blocking, Network
from .record import Fields
from .stream import Event, Place, follow
from .trace import UsualTrace, usual_trace
from .spellings import strict
from .transport import CallOptions, Calls, Connection, Sent, Transport
from .websocket import WebSocket, connect

if TYPE_CHECKING:
    from ._generated.calls import AsyncCall, Call


class _Stream(NamedTuple):
    place: str
    """Field with the position of an event."""
    is_last: Callable[[Event], bool]
    """Whether nothing follows an event. A live stream that ends without such an event was interrupted."""


def _is_exit(event: Event) -> bool:
    return event.get("type") == "exit"


def _is_end_of_room(event: Event) -> bool:
    return event.get("event") == "room.destroyed" and event.get("outcome") == "success"


_STREAMS = {
    "execution_stream": _Stream("seq", _is_exit),
    "template_build_stream": _Stream("seq", _is_exit),
    "terminal_watch": _Stream("offset", _is_exit),
    "room_events": _Stream("seq", _is_end_of_room),
    "org_events": _Stream("cursor", lambda _: False),
    "sandbox_file_watch": _Stream("cursor", lambda _: False),
    # Its lines have no position: a new connection starts with the whole state.
    "room_now": _Stream("cursor", lambda _: False),
}
StreamName: TypeAlias = Literal[
    "execution_stream",
    "template_build_stream",
    "terminal_watch",
    "room_events",
    "org_events",
    "sandbox_file_watch",
    "room_now",
]

SILENT_SECONDS = 60.0
"""Timeout for a part of a file; the whole may take any time."""
_ALSO_ANSWERS = {"health": (503,)}
"""Error statuses with a complete result: an unhealthy service returns its checks too."""
_LOCAL = "http://127.0.0.1:8080"
_KEY = re.compile(r"[\x21-\x7e]+")
_GAP = re.compile(r"[\s\x00-\x20\x7f]")
_OTHER_CALLS = {"events": "events()", "bytes": "download()", "socket": "a WebSocket"}


@strict
class Download:
    """A file while it is downloaded. Read it once to its end, or close it."""

    def __init__(self, answer: Answer | None) -> None:
        """The body of a response; None is an empty one."""
        self._answer = answer
        length = "0" if answer is None else answer.headers["content-length"]
        self.size: int | None = None if length is None else int(length)
        """Number of bytes that follow; None if it is unknown."""
        self.etag: str | None = None if answer is None else answer.headers["etag"]
        """ETag of the file."""

    @iterating
    def __iter__(self) -> AsyncGenerator[bytes, None]:
        """Yields the bytes as they arrive."""
        return self._parts()

    @blocking
    async def read(self) -> bytes:
        """Reads all bytes."""
        return b"".join([part async for part in self._parts()])

    @blocking
    async def text(self) -> str:
        """Reads all bytes as UTF-8 text."""
        return b"".join([part async for part in self._parts()]).decode()

    async def _write_to(self, file: IO[bytes]) -> None:
        async for part in self._parts():
            file.write(part)

    async def _parts(self) -> AsyncGenerator[bytes, None]:
        if self._answer is not None:
            async with aclosing(self._answer.parts(lambda: SILENT_SECONDS)) as parts:
                async for part in parts:
                    yield part

    def close(self) -> None:
        """Closes its connection."""
        if self._answer is not None:
            self._answer.close()

    def __enter__(self) -> "Download":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class Client:
    """Calls the operations of the service by name, with retries and idempotency."""

    _makes: ClassVar[type[Blocking] | type[Asyncio]] = Blocking

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        ca: str | None = None,
        traceparent: UsualTrace | None = None,
    ) -> None:
        """Connects to a service. Defaults are ROOMD_URL, ROOMD_API_KEY and the file named by ROOMD_CA_CERT; `ca` is PEM.

        `traceparent` is the trace context that calls continue, or a function that returns it; by default TRACEPARENT,
        which commands of a traced call have.
        """
        given = (url or os.environ.get("ROOMD_URL") or _LOCAL).strip()
        if not _is_url(given):
            raise RoomdError(f"{given} is not a URL such as {_LOCAL}.")
        key = (api_key or os.environ.get("ROOMD_API_KEY") or "").strip() or None
        if key is not None and not _KEY.fullmatch(key):
            raise RoomdError("The API key has invalid characters: spaces, line breaks or non-ASCII letters.")
        connection = Connection(given.rstrip("/"), key, ca or _trusted(), usual_trace(traceparent))
        self._transport = Transport(connection, self._makes())

    @property
    def url(self) -> str:
        """URL of the service."""
        return self._transport.connection.url

    @property
    def _network(self) -> Network:
        return self._transport.network

    if TYPE_CHECKING:
        call: Call
        _call: AsyncCall
    else:

        @blocking
        async def call(self, name: str, options: CallOptions | None = None, /, **input: Any) -> Any:
            """Calls an operation whose response is JSON or text. Fields that are Python keywords end in _, such as from_."""
            return await self._call(name, options, **input)

        async def _call(self, name: str, options: CallOptions | None = None, /, **input: Any) -> Any:
            answer = OPERATIONS[name].answer
            if answer not in ("json", "text"):
                raise RoomdError(f"{name} answers {answer}: use {_OTHER_CALLS[answer]}.")
            read = _json_of if answer == "json" else _text_of
            return await self._transport.send(_sent(name, input), read, options)

    @iterating
    def events(self, name: StreamName, options: CallOptions | None = None, /, **input: Any) -> AsyncGenerator[Event, None]:
        """Yields the events of a stream, after `after`. Lost connections are resumed; pings are left out.

        With `wait_ms` it raises TimeoutError unless the stream ends within this time.
        """
        place, is_last = _STREAMS[name]
        calls = Calls(options or {})

        async def open_after(after: Place | None, most_ms: float | None) -> Answer:
            sent = _sent(name, input if after is None else {**input, "after": after}, Accept="application/x-ndjson")
            opening = calls.next()
            if most_ms is not None:
                opening["wait_ms"] = min(most_ms, opening.get("wait_ms", most_ms))
            return await self._transport.send(sent, _unread, opening)

        return follow(
            self._transport.network,
            open_after,
            place_of=lambda event: _place_of(event, place),
            is_last=is_last,
            may_end=input.get("follow") is False,
            left_ms=lambda: calls.left_ms,
            has_answered=lambda: self._transport.has_answered,
        )

    @blocking
    async def read(self, name: str, options: CallOptions | None = None, /, **input: Any) -> bytes:
        """Reads a whole file, again if the connection breaks."""
        return await self._transport.send(_sent(name, input, Accept="*/*"), Answer.all, options)

    @blocking
    async def download(self, name: str, options: CallOptions | None = None, /, **input: Any) -> Download:
        """Streams a file. `wait_ms` bounds the wait for its start; each part may take a minute."""
        return Download(await self._transport.send(_sent(name, input, Accept="*/*"), _unread, options))

    @overload
    def upload(
        self, name: Literal["file_put"], body: FileBody, options: CallOptions | None = None, /, **input: Any
    ) -> WrittenFile: ...
    @overload
    def upload(
        self, name: Literal["sandbox_file_put"], body: FileBody, options: CallOptions | None = None, /, **input: Any
    ) -> WrittenSandboxFile: ...
    @blocking
    async def upload(self, name: str, body: FileBody, options: CallOptions | None = None, /, **input: Any) -> Any:
        """Sends a file, again if the connection breaks; an open file or a generator can be sent only once."""
        return await self._upload(name, body, options, **input)

    async def _upload(self, name: str, body: FileBody, options: CallOptions | None = None, /, **input: Any) -> Any:
        sent = _sent(name, input, body, **{"Content-Type": "application/octet-stream"})
        return await self._transport.send(sent, _json_of, options)

    @iterating
    async def items(
        self, name: str, options: CallOptions | None = None, /, **input: Any
    ) -> AsyncGenerator[Any, None]:
        """Yields every item of a list, page by page."""
        cursor: str | None = None
        call: Any = self._call
        while True:
            page = await call(name, options, **input, **({} if cursor is None else {"cursor": cursor}))
            for item in page["items"]:
                yield item
            cursor = page.get("next_cursor")
            if not cursor:
                return

    @blocking
    async def socket(self, path: str, protocols: Sequence[str], seconds: float) -> WebSocket:
        """Opens a WebSocket at a path from a response."""
        return await connect(self._transport, path, protocols, seconds)

    def close(self) -> None:
        """Closes idle connections."""
        self._transport.close()


class AsyncioClient(Client):
    """A client whose methods are only called through `aio` and `aiter_of`."""

    _makes = Asyncio

    def close(self) -> None:
        """Cancels pending calls, and closes the connections."""
        super().close()
        cast(Asyncio, self._network).close()


def blocking_client(client: Client) -> Client:
    """Another client of the same service, which blocks its thread."""
    made = Client(client.url)
    made._transport = Transport(client._transport.connection, Blocking())
    return made


def _is_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        # An invalid port raises ValueError.
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and not _GAP.search(url)
    except ValueError:
        return False


def digest_of(key: str) -> str:
    """Name of a resource that a call with this idempotency key creates: the same for the same key."""
    return hashlib.sha256(key.encode()).hexdigest()[:32]


def given(**fields: Any) -> dict[str, Any]:
    """The fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def _trusted() -> str | None:
    path = os.environ.get("ROOMD_CA_CERT")
    if not path:
        return None
    with open(path, encoding="utf-8") as file:
        return file.read()


def _sent(name: str, input: dict[str, Any], body: FileBody | None = None, **headers: str) -> Sent:
    """The request with each input field in the path, the query or the body, as the operation requires."""
    operation = OPERATIONS[name]
    fields = {key.rstrip("_"): value for key, value in input.items()}
    query, rest = {}, {}
    for key, value in fields.items():
        if f"{{{key}}}" in operation.path:
            continue
        if key not in operation.query:
            rest[key] = value
        elif value is not None:
            query[key] = str(value).lower() if isinstance(value, bool) else str(value)
    path = _path_of(operation, fields)
    if query:
        path += "?" + urlencode(query, quote_via=quote)
    if operation.body == "json":
        headers = {"Content-Type": "application/json", **headers}
        body = json.dumps(rest)
    return Sent(operation.method, path, headers, body, _ALSO_ANSWERS.get(name, ()), operation.answer == "json")


def _path_of(operation: Operation, fields: dict[str, Any]) -> str:
    def part(match: re.Match[str]) -> str:
        name = match[1]
        if name not in fields:
            raise TypeError(f"{operation.method} {operation.path} needs {name}.")
        value = str(fields[name])
        if not {".", ".."}.isdisjoint(value.split("/")):
            # URL resolution would lead to another path.
            raise RoomdError("A path may not have . or .. in it.")
        # Only the parameter `path` keeps its slashes.
        return quote(value.lstrip("/"), safe="/") if name == "path" else quote(value, safe="")

    return re.sub(r"\{(\w+)\}", part, operation.path)


async def _json_of(answer: Answer, deadline: float) -> Any:
    try:
        return json.loads(await answer.all(deadline), object_hook=Fields)
    except ValueError as error:
        raise ConnectionError("The answer cannot be parsed: it is not from roomd.", "foreign") from error


async def _text_of(answer: Answer, deadline: float) -> str:
    return (await answer.all(deadline)).decode()


async def _unread(answer: Answer, deadline: float) -> Answer:
    return answer


def _place_of(event: Event, name: str) -> Place | None:
    place = event.get(name)
    # Terminal output is addressed by bytes: the next position is behind this event's data.
    if name == "offset" and isinstance(place, int):
        return place + len(base64.b64decode(event.get("data_b64", "")))
    return place
