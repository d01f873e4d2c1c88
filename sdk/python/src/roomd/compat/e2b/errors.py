"""Exceptions by E2B's names, and the translation of roomd's errors into them."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ...errors import AuthenticationError, ProblemError, TimeoutError


class SandboxException(Exception):
    """An error of a sandbox. `__cause__` is the roomd error, with its code, hint and request id."""


class TimeoutException(SandboxException):
    """The command or the call did not end in time."""


class InvalidArgumentException(SandboxException):
    """An argument is invalid."""


class NotEnoughSpaceException(SandboxException):
    """A disk is full."""


class NotFoundException(SandboxException):
    """The resource does not exist."""


class FileNotFoundException(NotFoundException):
    """The file or directory does not exist."""


class SandboxNotFoundException(NotFoundException):
    """The sandbox does not exist, or has ended."""


class AuthenticationException(Exception):
    """The API key is missing or invalid."""


class RateLimitException(SandboxException):
    """A rate limit or a quota is exceeded."""


@dataclass
class CommandResult:
    """Outcome of a command that has ended."""

    stderr: str
    """Standard error, its first 16 MiB."""
    stdout: str
    """Standard output, its first 16 MiB."""
    exit_code: int
    """Exit code; 128 and the number of the signal if a signal ended it."""
    error: str | None = None
    """Always None; E2B has the reason of a failed start here."""


class CommandExitException(SandboxException, CommandResult):
    """A command exited with a code other than 0."""

    def __init__(self, stderr: str, stdout: str, exit_code: int, error: str | None = None) -> None:
        """Of a command with this outcome."""
        CommandResult.__init__(self, stderr, stdout, exit_code, error)
        SandboxException.__init__(self, f"Command exited with code {exit_code} and error:\n{stderr}")

    __hash__ = Exception.__hash__


_BY_CODE: dict[str, type[Exception]] = {
    "path_not_found": FileNotFoundException,
    "sandbox_not_found": SandboxNotFoundException,
    "room_not_found": SandboxNotFoundException,
    "disk_full": NotEnoughSpaceException,
    "drive_full": NotEnoughSpaceException,
}
_BY_STATUS: dict[int, type[Exception]] = {
    400: InvalidArgumentException,
    404: NotFoundException,
    410: NotFoundException,
    422: InvalidArgumentException,
    429: RateLimitException,
}


@contextmanager
def translating() -> Iterator[None]:
    """Raises roomd's errors by E2B's names."""
    try:
        yield
    except TimeoutError as error:
        raise TimeoutException(str(error)) from error
    except AuthenticationError as error:
        raise AuthenticationException(str(error)) from error
    except ProblemError as error:
        kind = _BY_CODE.get(error.code) or _BY_STATUS.get(error.status, SandboxException)
        raise kind(str(error)) from error


async def unless_missing(work: Callable[[], Awaitable[object]]) -> bool:
    """Does the work; False if its object does not exist."""
    try:
        with translating():
            await work()
    except NotFoundException:
        return False
    return True
