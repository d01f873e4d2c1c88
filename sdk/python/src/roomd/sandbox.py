"""A sandbox: a virtual machine that serves one agent of a room."""

import builtins
import math
import secrets
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Literal, Unpack

from ._generated.schemas import Room, SandboxCreateRequestLifecycle
from ._generated.schemas import Sandbox as SandboxRecord
from .agent import WAIT_MS, Agent
from .client import Client, digest_of, given
from .coroutines import aio, aiter_of, blocking, iterating
from .errors import ConflictError, ForkError, GoneError, NotFoundError, ProblemError, RoomdError, TimeoutError
from .execution import ENDING_MS, Command, CommandOptions, CommandResult, Execution, OutputHeard, SandboxName
from .files import Files
from .listening import wait_until_listening
from .records import ExposedPort, ForkProblem, Snapshot
from .spellings import names_of, strict
from .terminal import Terminal
from .transport import CallOptions, Calls, is_no_connection, longest_wait


class SandboxOptions(CallOptions, total=False):
    """Options of a new sandbox."""

    template: str
    """Name of the template; "default" by default."""
    snapshot: str
    """A snapshot of the room, in place of a template."""
    memory_mib: int
    """Memory in MiB; the template's by default."""
    vcpus: int
    """Number of virtual CPUs; 1 by default."""
    env: Mapping[str, str]
    """Environment variables of every command."""
    egress: Sequence[str]
    """Destinations that it may connect to, such as "packages.example.com:443"; "*" is every public address."""
    labels: Mapping[str, str]
    """Your labels, which can filter lists."""
    idle_timeout_seconds: int
    """It is idle after this time without use; `lifecycle["on_idle"]` is the action then."""
    max_duration_seconds: int
    """It ends this long after its creation."""
    lifecycle: SandboxCreateRequestLifecycle
    """Idle time, idle action and wake reasons."""
    guest_cid: int
    """Its guest CID; a free one by default."""


OWN_AGENT = "main"
"""Agent of a sandbox with a dedicated room."""
OWN_ROOM_LABEL = "roomd-sdk/own"
"""Label of a dedicated room, which ends with its sandbox."""
ROOM_SECONDS = 86_400
"""Time to live of such a room, unless the sandbox lives longer."""
IDLE_SECONDS = 900
"""Idle time after which a sandbox with a dedicated room hibernates."""
LEAST_LIFETIME_MS = 1000
SERVER_WAIT_MS = 60_000
"""Longest wait for a server, by default."""
TTL_MORE_SECONDS = 3600
"""Lifetime of a dedicated room in addition to that of its sandbox."""
MAX_TTL_SECONDS = 31_536_000
STARTING = ("creating", "starting")
STARTING_PAUSE_SECONDS = 0.25
"""Pause between polls: a service that has just restarted may respond without waiting."""
OWN_FIELDS = ("memory_mib", "guest_cid", "env", "labels", "idle_timeout_seconds", "max_duration_seconds", "lifecycle")


@strict
class Sandbox:
    """A virtual machine that serves one agent of a room."""

    def __init__(
        self,
        client: Client,
        room_id: str,
        agent_id: str,
        agent: Agent | None = None,
        record: SandboxRecord | None = None,
    ) -> None:
        """A sandbox that exists, by its room and agent. No call is made."""
        self.room_id = room_id
        """Name of its room."""
        self.agent_id = agent_id
        """Name of its agent, unique in its room."""
        self.agent = agent or Agent(client, room_id, agent_id)
        """Messages and barriers of its agent."""
        self._record = record
        self._client = client
        self._name: SandboxName = {"room_id": room_id, "sandbox": agent_id}
        self.files = Files(client, self._name)
        """Files of its disk."""
        # Whether its room ends with it, without its drive, and whether its client does.
        self._owns_room = False
        self._keeps_drive = False
        self._owns_client = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}(room_id={self.room_id!r}, agent_id={self.agent_id!r})"

    @classmethod
    @blocking
    async def create(
        cls,
        *,
        url: str | None = None,
        api_key: str | None = None,
        ca: str | None = None,
        keep: bool = False,
        ttl_seconds: int | None = ROOM_SECONDS,
        **options: Unpack[SandboxOptions],
    ) -> "Sandbox":
        """Creates a sandbox in a dedicated room, which ends with it.

        By default it hibernates after 15 minutes without use and is woken by the next use, and the room is destroyed
        after 24 hours, or `ttl_seconds`; None is never. `keep` keeps the drive for a day after `destroy`.
        """
        return await cls._create_with(Client(url, api_key, ca), options, keep, ttl_seconds)

    @classmethod
    async def _create_with(
        cls, client: Client, options: SandboxOptions, keep: bool = False, ttl_seconds: int | None = ROOM_SECONDS
    ) -> "Sandbox":
        calls = Calls(options)
        lasting = options.get("max_duration_seconds")
        if ttl_seconds == ROOM_SECONDS and lasting is not None:
            ttl_seconds = max(ROOM_SECONDS, min(lasting + TTL_MORE_SECONDS, MAX_TTL_SECONDS))
        if "lifecycle" not in options and "idle_timeout_seconds" not in options:
            options["lifecycle"] = {"idle_after_seconds": IDLE_SECONDS, "on_idle": "hibernate"}
        # Chosen before the call: the room may be created although the response is lost.
        room_id = _room_name(options.get("idempotency_key"))
        labels = {**options.get("labels", {}), OWN_ROOM_LABEL: "true"}
        has_room = False
        try:
            await create_room(client, calls.next(), room_id=room_id, labels=labels, **given(ttl_seconds=ttl_seconds))
            has_room = True
            made = await cls._created(client, room_id, OWN_AGENT, None, calls, options)
        except BaseException as error:
            # A refused create left no room. With a reused idempotency key, the room is the earlier call's.
            is_of_earlier_call = isinstance(error, ProblemError) and error.code == "idempotency_key_reused"
            may_have_room = has_room or not (isinstance(error, ProblemError) or is_no_connection(error))
            if not is_of_earlier_call and may_have_room:
                await client._network.finish(_abandon_room(client, room_id))
            client.close()
            raise
        return made._owned(keep)

    @classmethod
    @blocking
    async def connect(
        cls, id: str, *, url: str | None = None, api_key: str | None = None, ca: str | None = None, keep: bool = False
    ) -> "Sandbox":
        """A sandbox that exists, by its `sandbox_id` or "ROOM/AGENT".

        If `Sandbox.create` created it, `destroy` ends its room as well. Raises NotFoundError if it does not exist.
        """
        return await cls._connect_with(Client(url, api_key, ca), id, keep)

    @classmethod
    async def _connect_with(cls, client: Client, id: str, keep: bool = False) -> "Sandbox":
        try:
            found = await client._call("locate", None, id=id)
            room_id, agent_id = found["room_id"], found["agent_id"]
            if room_id is None or agent_id is None:
                raise RoomdError(f"{id} is not a sandbox.")
            record = await client._call("sandbox_get", None, room_id=room_id, sandbox=agent_id)
            room = await client._call("room_get", None, room_id=room_id)
        except BaseException:
            client.close()
            raise
        made = cls(client, room_id, agent_id, record=record)
        made._owns_client = True
        # A fork of it is in the same room, which does not end with the fork.
        is_own = room["labels"].get(OWN_ROOM_LABEL) == "true" and agent_id == OWN_AGENT
        return made._owned(keep) if is_own else made

    @classmethod
    @iterating
    def list(
        cls,
        *,
        label: tuple[str, str] | None = None,
        state: str | None = None,
        room_id: str | None = None,
        url: str | None = None,
        api_key: str | None = None,
        ca: str | None = None,
    ) -> AsyncGenerator[SandboxRecord, None]:
        """Records of the organization's sandboxes, over all rooms; `label` is a name and its value."""
        return cls._list_with(Client(url, api_key, ca), label, state, room_id)

    @classmethod
    async def _list_with(
        cls, client: Client, label: tuple[str, str] | None, state: str | None = None, room_id: str | None = None
    ) -> AsyncGenerator[SandboxRecord, None]:
        wanted: Any = given(label=None if label is None else ":".join(label), state=state, room_id=room_id)
        try:
            async for record in aiter_of(client.items)("org_sandbox_list", None, **wanted):
                yield record
        finally:
            client.close()

    def _owned(self, keep: bool) -> "Sandbox":
        self._owns_room, self._owns_client, self._keeps_drive = True, True, keep
        return self

    def _on(self, client: Client) -> "Sandbox":
        """The same sandbox with another client."""
        made = Sandbox(client, self.room_id, self.agent_id, record=self._record)
        made._owns_room, made._owns_client, made._keeps_drive = self._owns_room, self._owns_client, self._keeps_drive
        return made

    @classmethod
    @blocking
    async def create_in(
        cls,
        client: Client,
        room_id: str,
        agent_id: str,
        agent: Agent | None = None,
        **options: Unpack[SandboxOptions],
    ) -> "Sandbox":
        """Creates a sandbox in a room, and waits until it runs commands."""
        return await cls._created(client, room_id, agent_id, agent, Calls(options), options)

    @classmethod
    async def _created(
        cls, client: Client, room_id: str, agent_id: str, agent: Agent | None, calls: Calls, options: SandboxOptions
    ) -> "Sandbox":
        begun = await client._call("sandbox_create", calls.next(), room_id=room_id, agent_id=agent_id, **_wanted(options))
        return cls(client, room_id, agent_id, agent, await _await_start(client, calls, begun))

    @property
    def sandbox_id(self) -> str:
        """Its id, for `Sandbox.connect`. After `room.sandbox(name)` it is known once `get` was called."""
        return self._known["sandbox_id"]

    @property
    def state(self) -> str:
        """Its state in the last record that this object received; `get` fetches the current one."""
        return self._known["state"]

    @property
    def _known(self) -> SandboxRecord:
        if self._record is None:
            raise RoomdError("The sandbox's record is not loaded yet: call get() first.")
        return self._record

    def _noted(self, record: SandboxRecord) -> SandboxRecord:
        self._record = record
        return record

    @blocking
    async def get(self, **options: Unpack[CallOptions]) -> SandboxRecord:
        """Its record."""
        return self._noted(await self._client._call("sandbox_get", options, **self._name))

    @blocking
    async def is_running(self, **options: Unpack[CallOptions]) -> bool:
        """Whether it runs now; False while it hibernates and after its end."""
        try:
            return (await aio(self.get)(**options))["state"] == "running"
        except (NotFoundError, GoneError):
            return False

    @blocking
    async def update(self, **change: Any) -> SandboxRecord:
        """Changes labels, idle action or end. `change` has the fields of `schemas.SandboxUpdateRequest`."""
        return self._noted(await self._client._call("sandbox_update", None, **self._name, **change))

    @blocking
    async def set_timeout(self, ms: float, **options: Unpack[CallOptions]) -> None:
        """Sets its end, and the end of a dedicated room, to `ms` from now; a later call moves the end."""
        calls = Calls(options)
        if ms < LEAST_LIFETIME_MS:
            raise ValueError(f"set_timeout takes milliseconds, at least {LEAST_LIFETIME_MS}: {ms:g} s are {ms * 1000:g}.")
        seconds = math.ceil(ms / 1000)
        self._noted(await self._client._call("sandbox_update", calls.next(), **self._name, expires_in_seconds=seconds))
        if self._owns_room:
            await self._client._call("room_update", calls.next(), room_id=self.room_id, expires_in_seconds=seconds)

    @blocking
    async def set_egress(self, allowlist: Sequence[str], **options: Unpack[CallOptions]) -> Any:
        """Replaces the list of destinations that it may connect to; other open connections are closed."""
        return await self._client._call("egress_set", options, **self._name, allowlist=names_of(allowlist, "Destinations"))

    @blocking
    async def metrics(self, **options: Unpack[CallOptions]) -> Any:
        """Its use of CPU, memory and disk now."""
        return await self._client._call("sandbox_metrics", options, **self._name)

    @blocking
    async def logs(
        self,
        *,
        source: Literal["console", "agent"] | None = None,
        after: int | None = None,
        limit: int | None = None,
        **options: Unpack[CallOptions],
    ) -> Any:
        """Lines of its console, or of its agent's log, from a byte offset on."""
        wanted = given(source=source, after=after, limit=limit)
        return await self._client._call("sandbox_logs", options, **self._name, **wanted)

    @blocking
    async def exists(self, path: str, **options: Unpack[CallOptions]) -> bool:
        """Whether a file or directory exists on its disk."""
        return await aio(self.files.exists)(path, **options)

    @blocking
    async def wait_for_port(self, port: int, **options: Unpack[CallOptions]) -> None:
        """Waits until a server listens on a port, without exposing it.

        Raises TimeoutError after `wait_ms`, 60 s by default.
        """
        wait_ms = _server_wait(options)
        try:
            await wait_until_listening(self.files, port, Calls({**options, "wait_ms": wait_ms}))
        except TimeoutError as error:
            raise TimeoutError(f"No server listens on port {port} after {wait_ms:g} ms.") from error

    @blocking
    async def exec(
        self,
        command: Command,
        *,
        on_stdout: OutputHeard | None = None,
        on_stderr: OutputHeard | None = None,
        kill_on_cancel: bool = False,
        **options: Unpack[CommandOptions],
    ) -> CommandResult:
        """Runs a command and waits for its end.

        `timeout_ms` ends the command, after 10 minutes by default; `wait_ms` ends only the waiting, with a
        TimeoutError. A command that fails is no error: see `exit_code`.
        """
        return await aio(Execution.run)(
            self._client,
            self._name,
            command,
            on_stdout=on_stdout,
            on_stderr=on_stderr,
            kill_on_cancel=kill_on_cancel,
            **options,
        )

    @blocking
    async def start(self, command: Command, **options: Unpack[CommandOptions]) -> Execution:
        """Starts a command and leaves it running, without a time limit by default."""
        return await aio(Execution.start)(self._client, self._name, command, **options)

    def execution(self, id: str) -> Execution:
        """A command that was started before, by its `exec_id`."""
        return Execution(self._client, self._name, id)

    @blocking
    async def open_terminal(self, *, rows: int = 24, cols: int = 80, **wanted: Any) -> Terminal:
        """Opens a terminal, a login shell by default. `wanted` has the other fields of `schemas.TerminalCreateRequest`."""
        made = await self._client._call("terminal_create", None, **self._name, rows=rows, cols=cols, **wanted)
        return Terminal(self._client, self._name, made["terminal_id"])

    def terminal(self, id: str) -> Terminal:
        """A terminal that exists, by its id."""
        return Terminal(self._client, self._name, id)

    @blocking
    async def expose_port(
        self,
        port: int,
        *,
        visibility: Literal["private", "public"] | None = None,
        wait: bool = False,
        **options: Unpack[CallOptions],
    ) -> ExposedPort:
        """Makes a server in the sandbox reachable by URL; repeated calls for a port return the same record.

        With `wait` it returns once the server listens, and raises TimeoutError after `wait_ms`, 60 s by default.
        """
        input = given(visibility=visibility)
        if not wait:
            return ExposedPort(await self._client._call("sandbox_expose_port", options, **self._name, port=port, **input))
        calls = Calls({**options, "wait_ms": _server_wait(options)})
        while True:
            input["wait_ms"] = int(min(WAIT_MS, calls.left_ms or WAIT_MS))
            exposed = await self._client._call("sandbox_expose_port", calls.next(), **self._name, port=port, **input)
            if exposed["listening"]:
                return ExposedPort(exposed)

    @blocking
    async def snapshot(
        self,
        *,
        name: str | None = None,
        mode: Literal["full", "disk"] | None = None,
        **options: Unpack[CallOptions],
    ) -> Snapshot:
        """Saves its current state; it keeps running."""
        input = given(name=name, mode=mode)
        return Snapshot(await self._client._call("sandbox_snapshot", options, **self._name, **input))

    @blocking
    async def fork(self, agents: Sequence[str], **options: Unpack[CallOptions]) -> "builtins.list[Sandbox]":
        """Makes running copies of it in its room, one for each agent.

        Raises ForkError, with the copies made, if any failed.
        """
        wanted: Any = [{"agent_id": agent_id} for agent_id in names_of(agents, "Agents")]
        items = (await self._client._call("sandbox_fork", options, **self._name, agents=wanted))["items"]
        records = [item["sandbox"] for item in items if item["sandbox"] is not None]
        made = [Sandbox(self._client, each["room_id"], each["agent_id"], record=each) for each in records]
        failed = [(item["agent_id"], item["problem"]) for item in items]
        problems = [ForkProblem({"agent_id": name, **problem}) for name, problem in failed if problem is not None]
        if problems:
            raise ForkError(made, problems)
        return made

    @blocking
    async def rollback(self, snapshot_id: str, **options: Unpack[CallOptions]) -> SandboxRecord:
        """Restores it to a snapshot."""
        return self._noted(await self._client._call("sandbox_rollback", options, **self._name, snapshot_id=snapshot_id))

    @blocking
    async def standby(self, **options: Unpack[CallOptions]) -> SandboxRecord:
        """Pauses it in memory."""
        return self._noted(await self._client._call("sandbox_standby", options, **self._name))

    @blocking
    async def hibernate(self, **options: Unpack[CallOptions]) -> SandboxRecord:
        """Saves it to disk; it uses no memory until it is resumed or woken."""
        return self._noted(await self._client._call("sandbox_hibernate", options, **self._name))

    @blocking
    async def resume(self, **options: Unpack[CallOptions]) -> SandboxRecord:
        """Resumes it from standby or hibernation."""
        return self._noted(await self._client._call("sandbox_resume", options, **self._name))

    @blocking
    async def destroy(self, **options: Unpack[CallOptions]) -> None:
        """Destroys it, and a dedicated room with its drive. A sandbox that has ended is no error."""
        try:
            with gone_is_done():
                if self._owns_room:
                    drive: Any = "retain" if self._keeps_drive else "delete"
                    await self._client._call("room_destroy", options, room_id=self.room_id, drive=drive)
                else:
                    await self._client._call("sandbox_destroy", options, **self._name)
        finally:
            if self._owns_client:
                self._client.close()

    def __enter__(self) -> "Sandbox":
        return self

    @blocking
    async def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await aio(self.destroy)()


def _server_wait(options: CallOptions) -> float:
    wait_ms = longest_wait(options)
    return SERVER_WAIT_MS if wait_ms is None else wait_ms


@contextmanager
def gone_is_done() -> Iterator[None]:
    """Ignores errors of a resource that has already ended."""
    try:
        yield
    except (NotFoundError, GoneError):
        pass
    except ConflictError as error:
        if error.code != "room_destroying":
            raise


async def create_room(client: Client, options: CallOptions, **wanted: Any) -> Room:
    """Creates a room, with a generated name by default."""
    name = {"room_id": _room_name(options.get("idempotency_key"))}
    return await client._call("room_create", options, **{**name, **wanted})


async def _abandon_room(client: Client, room_id: str) -> None:
    with suppress(RoomdError):
        await client._call("room_destroy", {"wait_ms": ENDING_MS}, room_id=room_id, drive="delete")


def _room_name(key: str | None) -> str:
    """The same key means the same call, also from another process: the room gets the same name."""
    return f"sdk-{secrets.token_hex(6) if key is None else digest_of(key)}"


def _wanted(options: SandboxOptions) -> dict[str, Any]:
    egress = options.get("egress")
    return given(
        **{name: options.get(name) for name in OWN_FIELDS},
        template_id=options.get("template"),
        snapshot_id=options.get("snapshot"),
        vcpu_count=options.get("vcpus"),
        egress_allowlist=None if egress is None else names_of(egress, "Destinations"),
    )


async def _await_start(client: Client, calls: Calls, record: SandboxRecord) -> SandboxRecord:
    """Waits until it runs commands: if the start takes long, the service responds earlier."""
    name: SandboxName = {"room_id": record["room_id"], "sandbox": record["sandbox_id"]}
    while record["state"] in STARTING:
        await client._network.pause(STARTING_PAUSE_SECONDS)
        options = calls.next()
        wait_ms = int(min(WAIT_MS, options.get("wait_ms", WAIT_MS)))
        record = await client._call("sandbox_get", options, **name, wait_ms=wait_ms)
    if record["state"] in ("failed", "destroying", "destroyed"):
        raise RoomdError(f"The sandbox {record['sandbox_id']} has not started: {record['status']['message']}")
    return record
