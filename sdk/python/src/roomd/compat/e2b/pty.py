"""Terminals of a sandbox by E2B's interface. They are numbered by this object."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...client import given
from ...coroutines import aio, run
from ...sandbox import Sandbox as NativeSandbox
from ...terminal import AttachedTerminal, Terminal
from .commands import HOME
from .errors import NotFoundException, translating, unless_missing


@dataclass
class PtySize:
    """Size of a terminal."""

    rows: int
    """Number of rows."""
    cols: int
    """Number of columns."""


class PtyHandle:
    """A terminal that this program is attached to. Iterating over it yields (None, None, bytes) as they arrive."""

    def __init__(self, pid: int, terminal: Terminal, attached: AttachedTerminal) -> None:
        """A terminal by its number."""
        self.pid = pid
        """Number of the terminal in its `Pty`."""
        self._terminal = terminal
        self._attached = attached

    def __iter__(self) -> Any:
        with translating():
            for part in self._attached.output():
                yield None, None, part

    def wait(self, on_pty: Callable[[bytes], Any] | None = None) -> None:
        """Reads its output until it ends."""
        for _, _, part in self:
            if on_pty is not None:
                on_pty(part)

    def disconnect(self) -> None:
        """Detaches from it; it keeps running."""
        self._attached.close()

    def kill(self) -> bool:
        """Ends it and the processes in it. False if it has ended."""
        return run(unless_missing(aio(self._terminal.end)))


class Pty:
    """Opens terminals and types into them."""

    def __init__(self, sandbox: NativeSandbox) -> None:
        """The terminals of a sandbox."""
        self._sandbox = sandbox
        self._held: dict[int, PtyHandle] = {}

    def create(
        self,
        size: PtySize,
        user: str | None = None,
        cwd: str | None = None,
        envs: Mapping[str, str] | None = None,
        timeout: float | None = None,
        request_timeout: float | None = None,
    ) -> PtyHandle:
        """Opens a login shell. `timeout` has no effect: a terminal has no time limit."""
        wanted = given(user=None if user == "user" else user, cwd=cwd or HOME, env=None if envs is None else dict(envs))
        with translating():
            terminal = self._sandbox.open_terminal(rows=size.rows, cols=size.cols, **wanted)
            handle = PtyHandle(len(self._held) + 1, terminal, terminal.attach())
        self._held[handle.pid] = handle
        return handle

    def send_stdin(self, pid: int, data: bytes, request_timeout: float | None = None) -> None:
        """Types into a terminal."""
        self._get(pid)._attached.write(data)

    def resize(self, pid: int, size: PtySize, request_timeout: float | None = None) -> None:
        """Changes its size."""
        self._get(pid)._attached.resize(size.rows, size.cols)

    def kill(self, pid: int, request_timeout: float | None = None) -> bool:
        """Ends a terminal and the processes in it. False if it has ended."""
        return self._get(pid).kill()

    def _get(self, pid: int) -> PtyHandle:
        if pid not in self._held:
            raise NotFoundException(f"There is no terminal {pid}.")
        return self._held[pid]
