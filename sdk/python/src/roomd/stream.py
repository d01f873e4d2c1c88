"""Owns streams of events: read line by line, and resumed after the last event when the connection breaks.

A stream that was cut is never taken for one that has ended.
"""

import json
import time
from collections.abc import Callable, Generator
from contextlib import closing
from typing import Any

from .cancel import current
from .errors import ConnectionError, ProblemError, RoomdError, StreamError, TimeoutError
from .transport import Answer, is_moving, is_no_connection

SILENT_SECONDS = 45.0
"""The service sends something every 15 s."""
REOPEN_MS = 45_000.0
"""How long an answer may take once the stream has begun. Before, it may take longer: a sandbox may have to resume."""
AWAY_SECONDS = 120.0
"""How long to try again while nothing comes of it."""
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.1, 2.0

Event = dict[str, Any]
Place = str | int


def follow(
    open_after: Callable[[Place | None, float | None], Answer],
    place_of: Callable[[Event], Place | None],
    is_last: Callable[[Event], bool],
    may_end: bool,
    left_ms: Callable[[], float | None] = lambda: None,
    has_answered: Callable[[], bool] = lambda: True,
) -> Generator[Event, None, None]:
    """All events but pings. Raises when the service says that it cannot go on, and after two minutes without it.

    `open_after` asks for what comes after a place, within so many ms. None is from where the caller has said, and as
    long as any call may take. `is_last` tells whether nothing follows an event, `may_end` whether the stream may end
    without such a one. `left_ms` is the time that is left for all, and raises when it is over.
    `has_answered` tells whether the service has ever responded: if not, `open_after` has retried as long as is of use.
    """
    last: Place | None = None
    open_ms: float | None = None
    quiet_since: float | None = None
    pause = FIRST_PAUSE_SECONDS
    while True:
        wrong: RoomdError | None = None
        try:
            answer = open_after(last, open_ms)
            open_ms = REOPEN_MS
            with closing(_events_of(answer, left_ms)) as events:
                for event in events:
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
                # Only this try was too late, unless the caller's time is over too.
                left_ms()
            elif not _may_come_back(error) or (is_no_connection(error) and not has_answered()):
                raise
            wrong = error
            if is_moving(error):
                quiet_since = None
        now = time.monotonic()
        quiet_since = now if quiet_since is None else quiet_since
        if now - quiet_since > AWAY_SECONDS:
            raise ConnectionError(f"The stream could not be gone on with for {AWAY_SECONDS:g} s.", "away") from wrong
        left = left_ms()
        current().pause(pause if left is None else min(pause, left / 1000))
        pause = min(pause * 2, MAX_PAUSE_SECONDS)


def _may_come_back(error: RoomdError) -> bool:
    if isinstance(error, (ProblemError, StreamError)):
        return error.retryable
    return isinstance(error, ConnectionError)


def _events_of(answer: Answer, left_ms: Callable[[], float | None]) -> Generator[Event, None, None]:
    """The events of one answer. Raises ConnectionError when it is cut, or nothing comes for too long."""
    rest = b""

    def seconds() -> float:
        left = left_ms()
        return SILENT_SECONDS if left is None else min(SILENT_SECONDS, left / 1000)

    # Silence counts while it is read, and not while whoever asked does something with an event.
    with closing(answer.parts(seconds)) as parts:
        for part in parts:
            # What was cut is asked for again.
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                if line:
                    yield _event_of(line)


def _event_of(line: bytes) -> Event:
    try:
        return json.loads(line)
    except ValueError as error:
        raise ConnectionError("What came is no stream of roomd.", "foreign") from error
