"""Owns calls of the interface's operations by their names. What they take and return, the OpenAPI document says."""

import base64
import hashlib
import json
import os
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, overload
from urllib.parse import quote, urlencode, urlsplit

from ._generated.operations import OPERATIONS, Operation
from ._generated.schemas import WrittenFile, WrittenSandboxFile
from .errors import ConnectionError, RoomdError
from .stream import Event, Place, follow
from .trace import UsualTrace, usual_trace
from .transport import Answer, CallOptions, Calls, Connection, FileBody, Sent, Transport
from .websocket import WebSocket, connect

if TYPE_CHECKING:
    from ._generated.calls import Call


class _Stream(NamedTuple):
    place: str
    """What names an event's place."""
    is_last: Callable[[Event], bool]
    """Whether nothing follows an event. A stream that goes on ends with such a one, or was cut."""


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
}
StreamName: TypeAlias = Literal[
    "execution_stream",
    "template_build_stream",
    "terminal_watch",
    "room_events",
    "org_events",
    "sandbox_file_watch",
]

SILENT_SECONDS = 60.0
"""How long a part of a file may take; the whole may take any time."""
_ALSO_ANSWERS = {"health": (503,)}
"""It tells as fully that it is not well."""
_LOCAL = "http://127.0.0.1:8080"
_KEY = re.compile(r"[\x21-\x7e]+")
_GAP = re.compile(r"[\s\x00-\x20\x7f]")
_OTHER_CALLS = {"events": "events()", "bytes": "download()", "socket": "a WebSocket"}


class Download:
    """A file as it comes. It is read once: to its end, or it is to be closed."""

    def __init__(self, answer: Answer | None) -> None:
        """None is of nothing at all."""
        self._answer = answer
        length = "0" if answer is None else answer.headers["content-length"]
        self.size: int | None = None if length is None else int(length)
        """Of what follows; None where it is not told."""
        self.etag: str | None = None if answer is None else answer.headers["etag"]

    def __iter__(self) -> Generator[bytes, None, None]:
        if self._answer is not None:
            yield from self._answer.parts(lambda: SILENT_SECONDS)

    def read(self) -> bytes:
        return b"".join(self)

    def text(self) -> str:
        return self.read().decode()

    def close(self) -> None:
        if self._answer is not None:
            self._answer.close()

    def __enter__(self) -> "Download":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class Client:
    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        ca: str | None = None,
        traceparent: UsualTrace | None = None,
    ) -> None:
        """Takes what is not given from ROOMD_URL, ROOMD_API_KEY, and the file that ROOMD_CA_CERT names; `ca` is PEM.

        `traceparent` is the place in a trace that calls continue, or knows it; TRACEPARENT, which commands of a traced
        call have, if absent.
        """
        given = (url or os.environ.get("ROOMD_URL") or _LOCAL).strip()
        if not _is_url(given):
            raise RoomdError(f"{given} is not a URL such as {_LOCAL}.")
        key = (api_key or os.environ.get("ROOMD_API_KEY") or "").strip() or None
        if key is not None and not _KEY.fullmatch(key):
            raise RoomdError("The API key may not have spaces, line breaks or letters that are not of ASCII in it.")
        self._transport = Transport(Connection(given.rstrip("/"), key, ca or _trusted(), usual_trace(traceparent)))

    @property
    def url(self) -> str:
        return self._transport.connection.url

    if TYPE_CHECKING:
        call: Call
    else:

        def call(self, name: str, options: CallOptions | None = None, /, **input: Any) -> Any:
            """Calls an operation that answers JSON or text. A name that is a word of Python has _ behind it: from_."""
            answer = OPERATIONS[name].answer
            if answer not in ("json", "text"):
                raise RoomdError(f"{name} answers {answer}: use {_OTHER_CALLS[answer]}.")
            read = _json_of if answer == "json" else _text_of
            return self._transport.send(_sent(name, input), read, options)

    def events(
        self, name: StreamName, options: CallOptions | None = None, /, **input: Any
    ) -> Generator[Event, None, None]:
        """The events of a stream, from `after` on, whatever happens to connections; pings are left out.

        With `wait_ms` it raises a TimeoutError when the stream has not ended in this time.
        """
        place, is_last = _STREAMS[name]
        calls = Calls(options or {})

        def open_after(after: Place | None, most_ms: float | None) -> Answer:
            sent = _sent(name, input if after is None else {**input, "after": after}, Accept="application/x-ndjson")
            opening = calls.next()
            if most_ms is not None:
                opening["wait_ms"] = min(most_ms, opening.get("wait_ms", most_ms))
            return self._transport.send(sent, lambda answer, _: answer, opening)

        return follow(
            open_after,
            place_of=lambda event: _place_of(event, place),
            is_last=is_last,
            may_end=input.get("follow") is False,
            left_ms=lambda: calls.left_ms,
        )

    def read(self, name: str, options: CallOptions | None = None, /, **input: Any) -> bytes:
        """A whole file. Where the connection breaks it is read again."""
        return self._transport.send(_sent(name, input, Accept="*/*"), _bytes_of, options)

    def download(self, name: str, options: CallOptions | None = None, /, **input: Any) -> Download:
        """A file, as it comes: `timeout_ms` is for its beginning, and each part may take a minute."""
        return self._transport.send(_sent(name, input, Accept="*/*"), lambda answer, _: Download(answer), options)

    @overload
    def upload(
        self, name: Literal["file_put"], body: FileBody, options: CallOptions | None = None, /, **input: Any
    ) -> WrittenFile: ...
    @overload
    def upload(
        self, name: Literal["sandbox_file_put"], body: FileBody, options: CallOptions | None = None, /, **input: Any
    ) -> WrittenSandboxFile: ...
    def upload(self, name: str, body: FileBody, options: CallOptions | None = None, /, **input: Any) -> Any:
        """Sends a file. What can be read only once is sent once; all else is sent again where the connection breaks."""
        sent = _sent(name, input, body, **{"Content-Type": "application/octet-stream"})
        return self._transport.send(sent, _json_of, options)

    def items(self, name: str, options: CallOptions | None = None, /, **input: Any) -> Iterator[Any]:
        """Every item of a list, page by page."""
        cursor: str | None = None
        while True:
            page: Any = self.call(name, options, **input, **({} if cursor is None else {"cursor": cursor}))
            yield from page["items"]
            cursor = page.get("next_cursor")
            if not cursor:
                return

    def socket(self, path: str, protocols: Sequence[str], seconds: float) -> WebSocket:
        """A WebSocket at a path that an answer has told."""
        return connect(self._transport, path, protocols, seconds)

    def close(self) -> None:
        """Ends the connections that nothing uses."""
        self._transport.close()


def _is_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        # A port that is none raises.
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and not _GAP.search(url)
    except ValueError:
        return False


def digest_of(key: str) -> str:
    """A name for what is made by a key: the same one by the same key."""
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
    """The parts of an input by where the operation wants them."""
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
    return Sent(operation.method, path, headers, body, _ALSO_ANSWERS.get(name, ()))


def _path_of(operation: Operation, fields: dict[str, Any]) -> str:
    def part(match: re.Match[str]) -> str:
        name = match[1]
        if name not in fields:
            raise TypeError(f"{operation.method} {operation.path} needs {name}.")
        value = str(fields[name])
        if not {".", ".."}.isdisjoint(value.split("/")):
            # Whoever resolves the URL would take it for another place.
            raise RoomdError("The path may not have . or .. in it.")
        # The rest of a path has slashes.
        return quote(value.lstrip("/"), safe="/") if name == "path" else quote(value, safe="")

    return re.sub(r"\{(\w+)\}", part, operation.path)


def _json_of(answer: Answer, deadline: float) -> Any:
    try:
        return json.loads(answer.all(deadline))
    except ValueError as error:
        raise ConnectionError("What came is no answer of roomd.") from error


def _text_of(answer: Answer, deadline: float) -> str:
    return answer.all(deadline).decode()


def _bytes_of(answer: Answer, deadline: float) -> bytes:
    return answer.all(deadline)


def _place_of(event: Event, name: str) -> Place | None:
    place = event.get(name)
    # A terminal's bytes are counted: what comes next is behind them.
    if name == "offset" and isinstance(place, int):
        return place + len(base64.b64decode(event.get("data_b64", "")))
    return place
