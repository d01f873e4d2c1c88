"""Owns a sandbox: a virtual machine that serves one agent of a room."""

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Literal, Unpack

from ._generated.schemas import ExposedPort, Fork, Room, SandboxCreateRequestLifecycle, Snapshot
from ._generated.schemas import Sandbox as SandboxRecord
from .agent import WAIT_MS, Agent
from .cancel import Cancel, current
from .client import Client, digest_of, given
from .errors import ConflictError, GoneError, NotFoundError, ProblemError, RoomdError
from .execution import ENDING_MS, Command, CommandOptions, CommandResult, Execution, OutputHeard, SandboxName
from .files import Files
from .terminal import Terminal
from .transport import CallOptions, Calls


class SandboxOptions(CallOptions, total=False):
    template: str
    """"default" if absent."""
    snapshot: str
    """A snapshot of the room, in place of a template."""
    memory_mib: int
    """What the template says if absent."""
    vcpus: int
    env: Mapping[str, str]
    egress: Sequence[str]
    """Where it may connect to, such as "packages.example.com:443"; "*" is every public address."""
    labels: Mapping[str, str]
    idle_timeout_seconds: int
    """It ends after this time without a call that uses it."""
    max_duration_seconds: int
    lifecycle: SandboxCreateRequestLifecycle
    guest_cid: int
    """A free one if absent."""


TTL_MORE_SECONDS = 3600
"""How much longer a sandbox's own room lasts than it."""
MOST_TTL_SECONDS = 31_536_000
STARTING = ("creating", "starting")
STARTING_PAUSE_SECONDS = 0.25
"""A service that has just restarted may answer without waiting."""
OWN_FIELDS = ("memory_mib", "guest_cid", "env", "labels", "idle_timeout_seconds", "max_duration_seconds", "lifecycle")


class Sandbox:
    def __init__(self, client: Client, room_id: str, agent_id: str, agent: Agent | None = None) -> None:
        self.room_id = room_id
        self.agent_id = agent_id
        """The agent that it serves, by which it is named in its room."""
        self.agent = agent or Agent(client, room_id, agent_id)
        self._client = client
        self._name: SandboxName = {"room_id": room_id, "sandbox": agent_id}
        self.files = Files(client, self._name)
        """Of its own disk."""
        # Of a sandbox that has its room to itself.
        self._ends: Callable[..., None] | None = None

    @classmethod
    def create(
        cls,
        *,
        url: str | None = None,
        api_key: str | None = None,
        ca: str | None = None,
        **options: Unpack[SandboxOptions],
    ) -> "Sandbox":
        """A sandbox for who wants no room: it gets one of its own, which ends with it."""
        client = Client(url, api_key, ca)
        calls = Calls(options)
        lasting = options.get("max_duration_seconds")
        # Whoever forgets it, or is gone, leaves no room.
        ttl_seconds = None if lasting is None else min(lasting + TTL_MORE_SECONDS, MOST_TTL_SECONDS)
        key = options.get("idempotency_key")
        # Known before it is made: it may be made, and its answer lost.
        room_id = _room_name(key)

        has_room = False

        def end(**ending: Unpack[CallOptions]) -> None:
            try:
                client.call("room_destroy", ending, room_id=room_id, drive="delete")
            finally:
                client.close()

        try:
            create_room(client, calls.next(), room_id=room_id, **given(ttl_seconds=ttl_seconds))
            has_room = True
            made = cls._created(client, room_id, "main", None, calls, options)
        except BaseException as error:
            # Where it was refused there is none.
            if has_room or not isinstance(error, ProblemError):
                # A call that what was cancelled does not reach.
                with Cancel(), suppress(RoomdError):
                    end(timeout_ms=ENDING_MS)
            client.close()
            raise
        made._ends = end
        return made

    @classmethod
    def create_in(
        cls,
        client: Client,
        room_id: str,
        agent_id: str,
        agent: Agent | None = None,
        **options: Unpack[SandboxOptions],
    ) -> "Sandbox":
        """Creates one in a room, and waits until it runs commands."""
        return cls._created(client, room_id, agent_id, agent, Calls(options), options)

    @classmethod
    def _created(
        cls, client: Client, room_id: str, agent_id: str, agent: Agent | None, calls: Calls, options: SandboxOptions
    ) -> "Sandbox":
        begun = client.call("sandbox_create", calls.next(), room_id=room_id, agent_id=agent_id, **_wanted(options))
        _await_start(client, calls, begun)
        return cls(client, room_id, agent_id, agent)

    def get(self, **options: Unpack[CallOptions]) -> SandboxRecord:
        return self._client.call("sandbox_get", options, **self._name)

    def exec(
        self,
        command: Command,
        *,
        on_stdout: OutputHeard | None = None,
        on_stderr: OutputHeard | None = None,
        kill_on_cancel: bool = False,
        **options: Unpack[CommandOptions],
    ) -> CommandResult:
        """Runs a command and waits for its end; it is killed after `command_timeout_ms`, 10 minutes if absent.

        A command that fails is no error: look at `exit_code`. With `timeout_ms` it raises a TimeoutError when it has
        not ended in this time, and leaves it running.
        """
        return Execution.run(
            self._client,
            self._name,
            command,
            on_stdout=on_stdout,
            on_stderr=on_stderr,
            kill_on_cancel=kill_on_cancel,
            **options,
        )

    def start(self, command: Command, **options: Unpack[CommandOptions]) -> Execution:
        """Begins a command and leaves it running."""
        return Execution.start(self._client, self._name, command, **options)

    def execution(self, id: str) -> Execution:
        """A command that was begun before, by its name."""
        return Execution(self._client, self._name, id)

    def open_terminal(self, *, rows: int = 24, cols: int = 80, **wanted: Any) -> Terminal:
        """A login shell if nothing else is wanted; `wanted` is what terminal_create takes besides."""
        made = self._client.call("terminal_create", None, **self._name, rows=rows, cols=cols, **wanted)
        return Terminal(self._client, self._name, made["terminal_id"])

    def terminal(self, id: str) -> Terminal:
        return Terminal(self._client, self._name, id)

    def expose_port(
        self, port: int, *, visibility: Literal["private", "public"] | None = None, **options: Unpack[CallOptions]
    ) -> ExposedPort:
        """Makes a server in the sandbox reachable by URL; again: the same."""
        input = given(visibility=visibility)
        return self._client.call("sandbox_expose_port", options, **self._name, port=port, **input)

    def snapshot(
        self,
        *,
        name: str | None = None,
        mode: Literal["full", "disk"] | None = None,
        **options: Unpack[CallOptions],
    ) -> Snapshot:
        """Keeps what it is at this moment, while it goes on."""
        input = given(name=name, mode=mode)
        return self._client.call("sandbox_snapshot", options, **self._name, **input)

    def fork(self, agents: Sequence[str], **options: Unpack[CallOptions]) -> list[Fork]:
        """Makes copies that go on where it is: one for each agent, or what was in its way."""
        wanted: Any = [{"agent_id": agent_id} for agent_id in agents]
        return self._client.call("sandbox_fork", options, **self._name, agents=wanted)["items"]

    def rollback(self, snapshot_id: str, **options: Unpack[CallOptions]) -> SandboxRecord:
        """Turns it back to a snapshot."""
        return self._client.call("sandbox_rollback", options, **self._name, snapshot_id=snapshot_id)

    def standby(self, **options: Unpack[CallOptions]) -> SandboxRecord:
        """Pauses it in memory."""
        return self._client.call("sandbox_standby", options, **self._name)

    def hibernate(self, **options: Unpack[CallOptions]) -> SandboxRecord:
        """Puts it to sleep on disk."""
        return self._client.call("sandbox_hibernate", options, **self._name)

    def resume(self, **options: Unpack[CallOptions]) -> SandboxRecord:
        return self._client.call("sandbox_resume", options, **self._name)

    def destroy(self, **options: Unpack[CallOptions]) -> None:
        """Ends it, and the room that it has to itself."""
        if self._ends is not None:
            self._ends(**options)
        else:
            self._client.call("sandbox_destroy", options, **self._name)

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with gone_is_done():
            self.destroy()


@contextmanager
def gone_is_done() -> Iterator[None]:
    """For ending what may have been ended before."""
    try:
        yield
    except (NotFoundError, GoneError):
        pass
    except ConflictError as error:
        if error.code != "room_destroying":
            raise


def create_room(client: Client, options: CallOptions, **wanted: Any) -> Room:
    """A room, of a name that nobody has if none is given."""
    name = {"room_id": _room_name(options.get("idempotency_key"))}
    return client.call("room_create", options, **{**name, **wanted})


def _room_name(key: str | None) -> str:
    """The same key is the same call also from another process: it has the same names."""
    return f"sdk-{secrets.token_hex(6) if key is None else digest_of(key)}"


def _wanted(options: SandboxOptions) -> dict[str, Any]:
    egress = options.get("egress")
    return given(
        **{name: options.get(name) for name in OWN_FIELDS},
        template_id=options.get("template"),
        snapshot_id=options.get("snapshot"),
        vcpu_count=options.get("vcpus"),
        egress_allowlist=None if egress is None else list(egress),
    )


def _await_start(client: Client, calls: Calls, record: SandboxRecord) -> None:
    """Waits until it runs commands: the service answers before it does where a start takes long."""
    name: SandboxName = {"room_id": record["room_id"], "sandbox": record["sandbox_id"]}
    while record["state"] in STARTING:
        current().pause(STARTING_PAUSE_SECONDS)
        options = calls.next()
        wait_ms = int(min(WAIT_MS, options.get("timeout_ms", WAIT_MS)))
        record = client.call("sandbox_get", options, **name, wait_ms=wait_ms)
    if record["state"] in ("failed", "destroying", "destroyed"):
        raise RoomdError(f"The sandbox {record['sandbox_id']} has not started: {record['status']['message']}")
