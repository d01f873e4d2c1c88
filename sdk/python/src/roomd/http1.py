"""HTTP/1.1 on a connection: a request, and its response as it arrives."""

import builtins
import http.client
import io
import math
import os
import re
import time
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator, Iterable, Mapping
from contextlib import aclosing
from typing import Any, BinaryIO, cast

from .errors import ConnectionError, RoomdError, TimeoutError
from .network import PART_BYTES, Received, Wire

FileBody = str | bytes | bytearray | memoryview | os.PathLike[str] | Iterable[bytes] | AsyncIterable[bytes]
"""Content of a file to send; a path is a local file. An open file or a generator can be read only once, so it is not
retried. An asynchronous iterable is for asyncio only."""

BROKEN = (OSError, http.client.HTTPException)
"""Exceptions that the connection or the server causes."""
MAX_HEAD_BYTES = 64 * 1024
MAX_SECONDS = 86_400.0
"""Longest single wait: sockets do not support longer timeouts."""
ENDED_EARLY = "The connection broke before the answer was complete."
NO_BODY = (204, 304)
WITH_BODY = ("POST", "PUT", "PATCH")
"""Methods whose requests have a length although they have no body."""
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-9]\d\d)(?: .*)?\r?\n")
_CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*(?:;.*)?\r?\n")


class SourceFailed(Exception):
    """The request body could not be read: not a fault of the connection, whatever the exception."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


class Body:
    """A request body: bytes, or parts to send as they are read, in chunks if their length is unknown."""

    def __init__(self, body: FileBody | None) -> None:
        """Opens a local file."""
        self._file: BinaryIO | None = None
        self.parts: AsyncGenerator[bytes, None] | None = None
        self.bytes = b""
        self.length: int | None = 0
        if isinstance(body, str):
            body = body.encode()
        if isinstance(body, (bytes, bytearray, memoryview)):
            self.bytes = bytes(body)
            self.length = len(self.bytes)
        elif isinstance(body, os.PathLike):
            self._file = open(body, "rb")
            self.length = os.fstat(self._file.fileno()).st_size
            self.parts = _read_from(_parts_of_file(self._file, self.length))
        elif body is not None:
            self.length = None
            self.parts = _read_from(cast(Any, _parts_of_file(body, None) if hasattr(body, "read") else body))

    async def __aenter__(self) -> "Body":
        return self

    async def __aexit__(self, *raised: object) -> None:
        if self.parts is not None:
            await self.parts.aclose()
        if self._file is not None:
            self._file.close()


class Answer:
    """Status and headers of a response, and its body as it arrives. It must be read to its end, or closed."""

    def __init__(self, received: Received, keep: Callable[[Wire], None]) -> None:
        self._received = received
        self._keep = keep
        self._is_over = False
        self._has_version_1_1 = True
        self.status = 0
        self.headers = http.client.HTTPMessage()

    @property
    def is_json(self) -> bool:
        return self.headers.get_content_type() == "application/json"

    async def read_head(self, deadline: float) -> None:
        while True:
            lines = [await self._received.line(MAX_HEAD_BYTES, lambda: left_until(deadline))]
            if not lines[0]:
                raise http.client.RemoteDisconnected("Remote end closed connection without response")
            status = _STATUS_LINE.fullmatch(lines[0])
            if status is None:
                raise http.client.BadStatusLine(repr(lines[0][:100]))
            while lines[-1] not in (b"\r\n", b"\n"):
                lines.append(await self._received.line(MAX_HEAD_BYTES, lambda: left_until(deadline)))
                if not lines[-1].endswith(b"\n") or sum(map(len, lines)) > MAX_HEAD_BYTES:
                    raise http.client.HTTPException("The head of the response is incomplete or too long.")
            self.status = int(status[2])
            if self.status >= 200 or self.status == 101:
                break
        self._has_version_1_1 = status[1] == b"1"
        self.headers = http.client.parse_headers(io.BytesIO(b"".join(lines[1:])))

    async def parts(
        self, seconds: Callable[[], float] | None = None, deadline: float = math.inf
    ) -> AsyncGenerator[bytes, None]:
        """Yields the body as it arrives, with a timeout for each part. Raises ConnectionError if it ends early."""
        if self._is_over:
            raise RoomdError("The answer was read or closed, and cannot be read again.")
        silent = 0.0

        def left() -> float:
            nonlocal silent
            silent = left_until(deadline) if seconds is None else max(0.001, seconds())
            return silent

        try:
            async with aclosing(self._body(left)) as body:
                async for part in body:
                    yield part
            self._finish()
        except RoomdError:
            raise
        except builtins.TimeoutError as error:
            if seconds is not None:
                raise ConnectionError(f"The connection broke: nothing was received for {silent:g} s.") from error
            raise TimeoutError("The service has not answered in time.") from error
        except BROKEN as error:
            raise ConnectionError(ENDED_EARLY) from error
        finally:
            self.close()

    async def all(self, deadline: float) -> bytes:
        async with aclosing(self.parts(deadline=deadline)) as parts:
            return b"".join([part async for part in parts])

    def close(self) -> None:
        """Closes the connection, unless all was read."""
        if not self._is_over:
            self._is_over = True
            self._received.wire.close()

    def taken_over(self) -> Received:
        """The connection itself, with the bytes that were read ahead."""
        self._is_over = True
        return self._received

    async def _body(self, left: Callable[[], float]) -> AsyncGenerator[bytes, None]:
        if self.status in NO_BODY:
            return
        if self._is_chunked:
            while size := await self._chunk_size(left):
                async for part in self._exactly(size, left):
                    yield part
                if (await self._received.line(2, left)).strip():
                    raise ConnectionError(ENDED_EARLY)
            # Trailers end with an empty line.
            while (line := await self._received.line(MAX_HEAD_BYTES, left)).strip():
                pass
            if not line:
                raise ConnectionError(ENDED_EARLY)
        elif self._length is not None:
            async for part in self._exactly(self._length, left):
                yield part
        else:
            while part := await self._received.some(PART_BYTES, left):
                yield part

    async def _chunk_size(self, left: Callable[[], float]) -> int:
        line = _CHUNK_LINE.fullmatch(await self._received.line(MAX_HEAD_BYTES, left))
        if line is None:
            raise ConnectionError(ENDED_EARLY)
        return int(line[1], 16)

    async def _exactly(self, size: int, left: Callable[[], float]) -> AsyncGenerator[bytes, None]:
        while size > 0:
            part = await self._received.some(min(size, PART_BYTES), left)
            if not part:
                raise ConnectionError(ENDED_EARLY)
            size -= len(part)
            yield part

    @property
    def _is_chunked(self) -> bool:
        return (self.headers["transfer-encoding"] or "").lower().endswith("chunked")

    @property
    def _length(self) -> int | None:
        length = (self.headers["content-length"] or "").strip()
        return int(length) if length.isascii() and length.isdigit() else None

    def _finish(self) -> None:
        """Keeps the connection for the next request, if the server does and all bytes belong to this response."""
        options = {each.strip() for each in (self.headers["connection"] or "").lower().split(",")}
        is_kept = "close" not in options if self._has_version_1_1 else "keep-alive" in options
        has_end = self._is_chunked or self._length is not None or self.status in NO_BODY
        if is_kept and has_end and not self._received.bytes:
            self._is_over = True
            self._keep(self._received.wire)


def left_until(deadline: float) -> float:
    """Seconds until a monotonic time: at least a moment, in which a result that is there can be read."""
    return max(0.001, min(deadline - time.monotonic(), MAX_SECONDS))


def is_repeatable(body: FileBody | None) -> bool:
    return body is None or isinstance(body, (str, bytes, bytearray, memoryview, os.PathLike))


def check_headers(headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise RoomdError(f"The header {name!r} has invalid characters.")


async def send(wire: Wire, method: str, target: str, headers: Mapping[str, str], body: Body, deadline: float) -> None:
    """Sends a request. Returns early if the server closes the connection: it may have responded before it read the body."""
    fields = dict(headers)
    if body.length is None:
        fields["Transfer-Encoding"] = "chunked"
    elif body.length > 0 or body.parts is not None or method in WITH_BODY:
        fields["Content-Length"] = str(body.length)
    head = "".join([f"{method} {target} HTTP/1.1\r\n", *(f"{name}: {value}\r\n" for name, value in fields.items()), "\r\n"])
    try:
        await wire.write(head.encode("latin-1") + body.bytes[:PART_BYTES], left_until(deadline))
        await wire.write(memoryview(body.bytes)[PART_BYTES:], left_until(deadline))
        if body.parts is not None:
            async for part in body.parts:
                if part:
                    chunk = b"%x\r\n%b\r\n" % (len(part), part) if body.length is None else part
                    await wire.write(chunk, left_until(deadline))
        if body.length is None:
            await wire.write(b"0\r\n\r\n", left_until(deadline))
    except (BrokenPipeError, ConnectionResetError):
        pass


async def _read_from(source: Iterable[Any] | AsyncIterable[Any]) -> AsyncGenerator[bytes, None]:
    """Yields the parts of a source. Wraps its exceptions, to distinguish them from those of the connection."""
    try:
        if isinstance(source, AsyncIterable):
            async for part in source:
                yield part.encode() if isinstance(part, str) else part
        else:
            for part in source:
                yield part.encode() if isinstance(part, str) else part
    except Exception as error:
        raise SourceFailed(error) from error


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
