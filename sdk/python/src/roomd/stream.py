"""Event streams: read line by line, and resumed after the last event when the connection breaks.

An interrupted stream never counts as ended.
"""

import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

from .errors import ConnectionError, ProblemError, RoomdError, StreamError, TimeoutError
from .http1 import Answer
from .network import Network
from .transport import is_moving, is_no_connection

SILENT_SECONDS = 45.0
"""Timeout without data: the service sends a ping every 15 s."""
REOPEN_MS = 45_000.0
"""Timeout for a response when a stream is resumed. The first may take longer: a sandbox may have to resume."""
AWAY_SECONDS = 120.0
"""How long to retry without success."""
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.1, 2.0

Event = dict[str, Any]
Place = str | int


async def follow(
    network: Network,
    open_after: Callable[[Place | None, float | None], Awaitable[Answer]],
    place_of: Callable[[Event], Place | None],
    is_last: Callable[[Event], bool],
    may_end: bool,
    left_ms: Callable[[], float | None] = lambda: None,
    has_answered: Callable[[], bool] = lambda: True,
) -> AsyncGenerator[Event, None]:
    """Yields all events but pings. Raises if the service reports that the stream cannot continue, and after two minutes
    without the service.

    `open_after` opens the stream after a position, within a time limit in ms; None is the caller's position, and the
    time limit of any call. `is_last`: whether nothing follows an event. `may_end`: whether the stream may end without
    such an event. `left_ms`: the remaining time in total; raises once it has expired. `has_answered`: whether the
    service has ever responded; if not, `open_after` has retried as long as is of use.
    """
    last: Place | None = None
    open_ms: float | None = None
    quiet_since: float | None = None
    pause = FIRST_PAUSE_SECONDS
    while True:
        wrong: RoomdError | None = None
        try:
            answer = await open_after(last, open_ms)
            open_ms = REOPEN_MS
            async with aclosing(_events_of(answer, left_ms)) as events:
                async for event in events:
                    quiet_since, pause = None, FIRST_PAUSE_SECONDS
                    if event.get("type") == "ping":
                        continue
                    if event.get("type") == "error":
                        raise StreamError(event)
                    place = place_of(event)
                    last = last if place is None else place
                    yield event
                    if is_last(event):
                        return
            if may_end:
                return
        except RoomdError as error:
            if isinstance(error, TimeoutError) and open_ms is not None:
                # Only this attempt timed out, unless the caller's time limit has expired too.
                left_ms()
            elif not _may_come_back(error) or (is_no_connection(error) and not has_answered()):
                raise
            wrong = error
            if is_moving(error):
                quiet_since = None
        now = time.monotonic()
        quiet_since = now if quiet_since is None else quiet_since
        if now - quiet_since > AWAY_SECONDS:
            raise ConnectionError(f"The stream could not be resumed for {AWAY_SECONDS:g} s.", "away") from wrong
        left = left_ms()
        await network.pause(pause if left is None else min(pause, left / 1000))
        pause = min(pause * 2, MAX_PAUSE_SECONDS)


def _may_come_back(error: RoomdError) -> bool:
    if isinstance(error, (ProblemError, StreamError)):
        return error.retryable
    return isinstance(error, ConnectionError)


async def _events_of(answer: Answer, left_ms: Callable[[], float | None]) -> AsyncGenerator[Event, None]:
    """Yields the events of one response. Raises ConnectionError if it is interrupted, or silent for too long."""
    rest = b""

    def seconds() -> float:
        left = left_ms()
        return SILENT_SECONDS if left is None else min(SILENT_SECONDS, left / 1000)

    # The timeout applies to reads only, not to the time in which the consumer processes an event.
    async with aclosing(answer.parts(seconds)) as parts:
        async for part in parts:
            # A truncated line is requested again.
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                if line:
                    yield _event_of(line)


def _event_of(line: bytes) -> Event:
    try:
        return json.loads(line)
    except ValueError as error:
        raise ConnectionError("The answer is not a stream of roomd.", "foreign") from error
