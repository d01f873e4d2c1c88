"""The trace that calls continue (W3C Trace Context): that of a message, of the running command, or one set by the program."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

TracePlace = str | Mapping[str, Any]
"""A trace context: a `traceparent` text, or a message, which carries that of its sender."""
UsualTrace = str | Callable[[], str | None]

_FORM = re.compile(r"[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}", re.ASCII)
_WITHIN: ContextVar[str | None] = ContextVar("roomd_trace", default=None)


@contextmanager
def continuing(place: TracePlace) -> Iterator[None]:
    """All calls in its `with` block continue the trace of `place`, as do the commands and messages that they start.

    With a message as `place` they continue the trace of its sender. A place without a trace has no effect.
    """
    given = place if isinstance(place, str) else place["headers"].get("traceparent")
    if not _is_valid(given):
        yield
        return
    before = _WITHIN.set(given)
    try:
        yield
    finally:
        _WITHIN.reset(before)


def usual_trace(given: UsualTrace | None) -> UsualTrace | None:
    """The given trace context, or TRACEPARENT, which commands of a traced call have."""
    return given or os.environ.get("TRACEPARENT")


def traceparent_of(usual: UsualTrace | None) -> str | None:
    """Trace context of a call: that of the enclosing `continuing`, or the client's default."""
    given = _WITHIN.get() or (usual() if callable(usual) else usual)
    return given if _is_valid(given) else None


def _is_valid(text: str | None) -> bool:
    return text is not None and _FORM.fullmatch(text) is not None
