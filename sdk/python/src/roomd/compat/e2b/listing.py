"""Descriptions of sandboxes by E2B's interface, and pages of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import ClassVar

from ..._generated.schemas import Sandbox as SandboxRecord
from ...client import Client
from ...coroutines import blocking
from ...sandbox import Sandbox as NativeSandbox
from .errors import SandboxException, translating

PAUSED = ("pausing", "paused", "hibernating", "hibernated")
ENDED = ("failed", "destroying", "destroyed")
NEVER = datetime.max.replace(tzinfo=UTC)
DEFAULT_PAGE = 100


class SandboxState(Enum):
    """States of a sandbox."""

    RUNNING = "running"
    PAUSED = "paused"


@dataclass
class SandboxInfo:
    """Description of a sandbox."""

    sandbox_id: str
    """Its id, for `Sandbox.connect`."""
    template_id: str
    """Template that it was created from."""
    name: str | None
    """Always None."""
    metadata: dict[str, str]
    """Its labels."""
    started_at: datetime
    """Time of its creation."""
    end_at: datetime
    """Time of its end; `datetime.max` if it has none."""
    state: SandboxState
    """Whether it runs or is paused."""
    cpu_count: int
    """Number of virtual CPUs."""
    memory_mb: int
    """Memory in MiB."""


@dataclass
class SandboxQuery:
    """Filters of a list."""

    metadata: Mapping[str, str] | None = None
    """Only sandboxes with these labels."""
    state: list[SandboxState] | None = None
    """Only sandboxes in these states."""


class SandboxPaginator:
    """Pages of the organization's sandboxes."""

    _makes: ClassVar[type[Client]] = Client

    def __init__(
        self,
        query: SandboxQuery | None = None,
        limit: int | None = None,
        api_key: str | None = None,
        api_url: str | None = None,
    ) -> None:
        """Pages of `limit` sandboxes each, 100 by default."""
        self._query = query or SandboxQuery()
        self._limit = limit or DEFAULT_PAGE
        # The service filters by one label, this object by the others.
        label = next(iter((self._query.metadata or {}).items()), None)
        self._records = NativeSandbox._list_with(self._makes(api_url, api_key), label)
        self._has_next = True

    @property
    def has_next(self) -> bool:
        """Whether there may be another page."""
        return self._has_next

    @blocking
    async def next_items(self) -> list[SandboxInfo]:
        """The next page."""
        if not self._has_next:
            raise SandboxException("There are no more pages.")
        page: list[SandboxInfo] = []
        with translating():
            while len(page) < self._limit:
                record = await anext(self._records, None)
                if record is None:
                    self._has_next = False
                    break
                if record["state"] not in ENDED and self._fits(info_of(record)):
                    page.append(info_of(record))
        return page

    def _fits(self, info: SandboxInfo) -> bool:
        wanted = (self._query.metadata or {}).items()
        states = self._query.state
        return all(info.metadata.get(name) == value for name, value in wanted) and (
            states is None or info.state in states
        )


def info_of(record: SandboxRecord) -> SandboxInfo:
    """The description of a sandbox from its record."""
    end = record["expires_at"]
    return SandboxInfo(
        sandbox_id=record["sandbox_id"],
        template_id=record["template_id"],
        name=None,
        metadata=record["labels"],
        started_at=datetime.fromisoformat(record["created_at"]),
        end_at=NEVER if end is None else datetime.fromisoformat(end),
        state=SandboxState.PAUSED if record["state"] in PAUSED else SandboxState.RUNNING,
        cpu_count=record["vcpu_count"],
        memory_mb=record["memory_mib"],
    )
