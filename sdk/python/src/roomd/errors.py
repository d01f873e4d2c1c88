"""Errors of the SDK: problems that the service responds with, and failures without a response."""

import builtins
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ._generated.schemas import FieldError, Problem
from .records import ForkProblem


class RoomdError(Exception):
    """Base class of all errors that the SDK raises."""


ConnectionFault = Literal["unreachable", "untrusted", "broken", "foreign", "away"]
"""Cause of a ConnectionError. `unreachable`: no connection. `untrusted`: the certificate is not trusted. `broken`: the
connection broke, and the call may have been executed. `foreign`: the response is not from roomd. `away`: a stream could
not be resumed."""


class ConnectionError(RoomdError, builtins.ConnectionError):
    """No response arrived: the service is unreachable, the connection broke, or the response is not from roomd."""

    def __init__(
        self, message: str, fault: ConnectionFault = "broken", url: str | None = None, status: int | None = None
    ) -> None:
        """An error with this message and cause."""
        super().__init__(message)
        self.fault: ConnectionFault = fault
        """Cause of the failure."""
        self.url = url
        """URL of the service, if it is known."""
        self.status = status
        """Status of a response that is not from roomd."""


class TimeoutError(RoomdError, builtins.TimeoutError):
    """The time limit of the call is over."""


class Cancelled(RoomdError):
    """The call was cancelled by `Cancel`."""


class ProblemError(RoomdError):
    """The service refused or could not execute the call. The subclass is the kind of problem, `code` the exact one."""

    def __init__(self, problem: Problem) -> None:
        """Error of a response with these problem details."""
        hint = problem["hint"]
        super().__init__(problem["detail"] if hint is None else f"{problem['detail']} {hint}")
        self.problem = problem
        """The problem details of the response."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickle would otherwise rebuild it from its message.
        return type(self), (self.problem,)

    @property
    def code(self) -> str:
        """Stable error code, from a closed list."""
        return self.problem["code"]

    @property
    def status(self) -> int:
        """HTTP status."""
        return self.problem["status"]

    @property
    def retryable(self) -> bool:
        """Whether the same call may succeed later."""
        return self.problem["retryable"]

    @property
    def hint(self) -> str | None:
        """Suggestion for the next step."""
        return self.problem["hint"]

    @property
    def request_id(self) -> str:
        """Id of the request, for logs and support."""
        return self.problem["request_id"]

    @property
    def details(self) -> dict[str, Any]:
        """Data about the failure, by code."""
        return self.problem["details"]

    @property
    def errors(self) -> list[FieldError]:
        """Every invalid field."""
        return self.problem["errors"]


class InvalidRequestError(ProblemError):
    """400, 413, 415, 416, 422: the call is invalid."""


class AuthenticationError(ProblemError):
    """401: the API key is missing or invalid."""


class PermissionError(ProblemError, builtins.PermissionError):
    """403: the key is valid but lacks the permission."""


class NotFoundError(ProblemError):
    """404: the resource does not exist."""


class ConflictError(ProblemError):
    """409: the call conflicts with the current state."""


class GoneError(ProblemError):
    """410: the resource existed and is gone."""


class PreconditionError(ProblemError):
    """412: the precondition of If-Match does not hold."""


class LimitError(ProblemError):
    """429: a rate limit or a quota is exceeded."""


class UnavailableError(ProblemError):
    """5xx: the service, its host or a guest cannot execute the call now."""


class StreamError(RoomdError):
    """A stream ended because the service cannot continue it."""

    def __init__(self, event: Mapping[str, Any]) -> None:
        """Error of a stream that ended with this event."""
        self._event = dict(event)
        self.code: str = event["code"]
        """Stable error code."""
        # An error event of an audit stream has no field but the code.
        super().__init__(event.get("detail", f"The stream ended: {self.code}."))
        self.retryable: bool = event.get("retryable", self.code == "shutting_down")
        """Whether the stream may be resumed later."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._event,)


class ForkError(RoomdError):
    """Some copies of a fork could not be made. The others run, and stay until they are destroyed."""

    def __init__(self, sandboxes: Sequence[Any], problems: Sequence[ForkProblem]) -> None:
        """Error of a fork with these outcomes."""
        self.sandboxes = list(sandboxes)
        """The forked sandboxes that were created, as Sandbox or AsyncSandbox objects."""
        self.problems = list(problems)
        """One for each forked sandbox that could not be created, with `agent_id`, `code` and `detail`."""
        told = " ".join(f"{each.agent_id}: {each.detail}" for each in self.problems)
        count = len(self.sandboxes) + len(self.problems)
        super().__init__(f"{len(self.problems)} of {count} copies could not be made. {told}")


class TemplateBuildError(RoomdError):
    """A template could not be built."""

    def __init__(self, build: Mapping[str, Any], last_lines: Sequence[str]) -> None:
        """Error of a build that failed."""
        self.build = dict(build)
        """Record of the build."""
        self.last_lines = list(last_lines)
        """The last lines of its output."""
        failure = build.get("failure")
        reason = f"it ended as {build['state']}" if failure is None else failure["detail"]
        super().__init__("\n".join([f"Template {build['template_id']} was not built: {reason}", *last_lines]))


_KINDS: dict[int, type[ProblemError]] = {
    401: AuthenticationError,
    403: PermissionError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    412: PreconditionError,
    429: LimitError,
}


def problem_error(problem: Problem) -> ProblemError:
    status = problem["status"]
    return _KINDS.get(status, UnavailableError if status >= 500 else InvalidRequestError)(problem)
