"""Request headers of file calls: the range of bytes to read, and the precondition of a write."""

from .transport import CallOptions


def ranged(options: CallOptions, offset: int, length: int | None) -> CallOptions:
    """The options with a Range header for `length` bytes from `offset`; `None` is up to the end of the file."""
    if offset == 0 and length is None:
        return options
    last = "" if length is None else offset + length - 1
    return _with_header(options, "Range", f"bytes={offset}-{last}")


def conditional(options: CallOptions, etag: str | None) -> CallOptions:
    """The options with an If-Match header, if an ETag is given."""
    return options if etag is None else _with_header(options, "If-Match", etag)


def _with_header(options: CallOptions, name: str, value: str) -> CallOptions:
    return {**options, "headers": {**options.get("headers", {}), name: value}}
