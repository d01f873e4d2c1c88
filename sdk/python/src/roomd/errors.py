"""Owns the ways in which a call fails: what the service answered by its code, or that no answer came."""

import builtins
from collections.abc import Mapping, Sequence
from typing import Any

from ._generated.schemas import FieldError, Problem
from .records import ForkProblem


class RoomdError(Exception):
    """Everything that the SDK raises, but for mistakes of its caller."""


class ConnectionError(RoomdError, builtins.ConnectionError):
    """No answer came: nobody listens, the connection broke, or what answered is not roomd."""


class TimeoutError(RoomdError, builtins.TimeoutError):
    """The time that the caller gave is over."""


class Cancelled(RoomdError):
    """Whoever asked does not want the answer any more."""


class ProblemError(RoomdError):
    """The service refused, or could not do it. The subclass tells the kind, `code` what it is."""

    def __init__(self, problem: Problem) -> None:
        hint = problem["hint"]
        super().__init__(problem["detail"] if hint is None else f"{problem['detail']} {hint}")
        self.problem = problem

    def __reduce__(self) -> tuple[Any, ...]:
        # Between processes it would be made of its text.
        return type(self), (self.problem,)

    @property
    def code(self) -> str:
        """One word of a closed list, which does not change."""
        return self.problem["code"]

    @property
    def status(self) -> int:
        return self.problem["status"]

    @property
    def retryable(self) -> bool:
        """Whether the same call may succeed later."""
        return self.problem["retryable"]

    @property
    def hint(self) -> str | None:
        """What to do next."""
        return self.problem["hint"]

    @property
    def request_id(self) -> str:
        return self.problem["request_id"]

    @property
    def details(self) -> dict[str, Any]:
        return self.problem["details"]

    @property
    def errors(self) -> list[FieldError]:
        """Every field that is wrong."""
        return self.problem["errors"]


class InvalidRequestError(ProblemError):
    """400, 413, 415, 416, 422: the call itself is wrong."""


class AuthenticationError(ProblemError):
    """401: no key, or one that is not good."""


class PermissionError(ProblemError, builtins.PermissionError):
    """403: the key is good, and may not do this."""


class NotFoundError(ProblemError):
    """404."""


class ConflictError(ProblemError):
    """409: it does not fit with how things are."""


class GoneError(ProblemError):
    """410: it was there."""


class PreconditionError(ProblemError):
    """412: what If-Match or if_match wanted is not so."""


class LimitError(ProblemError):
    """429: too much at once, or a quota is used up."""


class UnavailableError(ProblemError):
    """5xx: the service, its host or a guest cannot do it now."""


class StreamError(RoomdError):
    """What a stream says last when it cannot go on."""

    def __init__(self, event: Mapping[str, Any]) -> None:
        self._event = dict(event)
        self.code: str = event["code"]
        # Of an audit's stream nothing but the code is told.
        super().__init__(event.get("detail", f"The stream ended: {self.code}."))
        self.retryable: bool = event.get("retryable", self.code == "shutting_down")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._event,)


class ForkError(RoomdError):
    """Some copies of a fork could not be made. The others run, and stay until they are destroyed."""

    def __init__(self, sandboxes: Sequence[Any], problems: Sequence[ForkProblem]) -> None:
        self.sandboxes = list(sandboxes)
        """The copies that were made, as Sandbox or AsyncSandbox objects."""
        self.problems = list(problems)
        """One for each copy that could not be made, with `agent_id`, `code` and `detail`."""
        told = " ".join(f"{each.agent_id}: {each.detail}" for each in self.problems)
        count = len(self.sandboxes) + len(self.problems)
        super().__init__(f"{len(self.problems)} of {count} copies could not be made. {told}")


class TemplateBuildError(RoomdError):
    """A template could not be built."""

    def __init__(self, build: Mapping[str, Any], last_lines: Sequence[str]) -> None:
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
