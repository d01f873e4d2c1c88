"""The class Sandbox by E2B's interface: a sandbox in a dedicated room, which ends after `timeout` seconds."""

import math
from collections.abc import Mapping
from functools import partial
from types import TracebackType
from typing import Any, ClassVar
from weakref import finalize

from ...client import Client, given
from ...coroutines import aio, blocking
from ...errors import GoneError, NotFoundError
from ...sandbox import Sandbox as NativeSandbox
from .commands import HOME, Commands
from .errors import NotFoundException, translating
from .filesystem import Filesystem
from .listing import ENDED, PAUSED, SandboxInfo, SandboxPaginator, SandboxQuery, info_of
from .pty import Pty
from .variant import either

DEFAULT_SECONDS = 300


class Sandbox:
    """A sandbox. The end of a `with` block kills it."""

    _makes: ClassVar[type[Client]] = Client

    def __init__(self, native: NativeSandbox, client: Client) -> None:
        """Wraps a sandbox of this SDK. Programs call `Sandbox.create` or `Sandbox.connect`."""
        self.native = native
        """The same sandbox with roomd's complete interface."""
        self._client = client
        self._hosts: dict[int, str] = {}
        self._files = Filesystem(client, native)
        self._commands = Commands(client, native)
        self._pty = Pty(native)
        # E2B's objects need no close: idle connections are closed with this object.
        finalize(self, _close_all, client, native._client)

    @property
    def sandbox_id(self) -> str:
        """Its id, for `Sandbox.connect`."""
        return self.native.sandbox_id

    @property
    def files(self) -> Filesystem:
        """Its files."""
        return self._files

    @property
    def commands(self) -> Commands:
        """Its commands."""
        return self._commands

    @property
    def pty(self) -> Pty:
        """Its terminals."""
        return self._pty

    @classmethod
    @blocking
    async def create(
        cls,
        template: str | None = None,
        timeout: float | None = None,
        metadata: Mapping[str, str] | None = None,
        envs: Mapping[str, str] | None = None,
        secure: bool = True,
        allow_internet_access: bool = True,
        network: Mapping[str, Any] | None = None,
        lifecycle: Mapping[str, Any] | None = None,
        *,
        api_key: str | None = None,
        api_url: str | None = None,
        request_timeout: float | None = None,
    ) -> "Sandbox":
        """Creates a sandbox of a template, `default` if none is named.

        It ends after `timeout` seconds, 300 by default; with `lifecycle={"on_timeout": "pause"}` it hibernates after this
        time without use, and is woken by the next use. `network={"allow_out": [...]}` lists the destinations that it may
        connect to. `secure` has no effect: every call needs the key. `api_url` and `api_key` are by default ROOMD_URL
        and ROOMD_API_KEY.
        """
        seconds = max(1, math.ceil(DEFAULT_SECONDS if timeout is None else timeout))
        ends: Any = {"max_duration_seconds": seconds}
        if (lifecycle or {}).get("on_timeout") == "pause":
            ends = {"lifecycle": {"idle_after_seconds": seconds, "on_idle": "hibernate"}}
        wanted: Any = given(
            template=template,
            labels=metadata,
            env=envs,
            egress=(network or {}).get("allow_out") if allow_internet_access else [],
            wait_ms=None if request_timeout is None else request_timeout * 1000,
        )
        with translating():
            native = await NativeSandbox._create_with(cls._makes(api_url, api_key), ends | wanted)
            try:
                await aio(native.files.mkdir)(HOME)
                return cls(native, cls._makes(api_url, api_key))
            except BaseException:
                await native._client._network.finish(aio(native.destroy)())
                raise

    @classmethod
    def list(
        cls,
        query: SandboxQuery | None = None,
        limit: int | None = None,
        *,
        api_key: str | None = None,
        api_url: str | None = None,
    ) -> SandboxPaginator:
        """Pages of the organization's sandboxes."""
        return SandboxPaginator(query, limit, api_key, api_url)

    @classmethod
    async def _found(cls, sandbox_id: str, api_key: str | None, api_url: str | None) -> "Sandbox":
        native = await NativeSandbox._connect_with(cls._makes(api_url, api_key), sandbox_id)
        return cls(native, cls._makes(api_url, api_key))

    @classmethod
    @blocking
    async def _connected(
        cls,
        sandbox_id: str,
        timeout: float | None = None,
        *,
        api_key: str | None = None,
        api_url: str | None = None,
    ) -> "Sandbox":
        with translating():
            found = await cls._found(sandbox_id, api_key, api_url)
        return await found._resumed(timeout)

    @classmethod
    @blocking
    async def _killed(cls, sandbox_id: str, *, api_key: str | None = None, api_url: str | None = None) -> bool:
        try:
            with translating():
                found = await cls._found(sandbox_id, api_key, api_url)
        except NotFoundException:
            return False
        try:
            return await aio(found.kill)()
        finally:
            found._close()

    async def _resumed(self, timeout: float | None = None) -> "Sandbox":
        with translating():
            if (await aio(self.native.get)())["state"] in PAUSED:
                await aio(self.native.resume)()
            if timeout is not None:
                await aio(self.native.set_timeout)(max(1, timeout) * 1000)
        return self

    @partial(either, by_id="_connected")
    @blocking
    async def connect(self, timeout: float | None = None) -> "Sandbox":
        """Resumes it if it is paused; `Sandbox.connect(id)` finds one. `timeout` sets its end, in seconds from now."""
        return await self._resumed(timeout)

    @partial(either, by_id="_killed")
    @blocking
    async def kill(self) -> bool:
        """Ends it. False if it has ended, or for `Sandbox.kill(id)` does not exist."""
        with translating():
            try:
                has_ended = (await aio(self.native.get)())["state"] in ENDED
            except (NotFoundError, GoneError):
                has_ended = True
            await aio(self.native.destroy)()
        self._client.close()
        return not has_ended

    @either
    @blocking
    async def is_running(self, request_timeout: float | None = None) -> bool:
        """Whether it runs."""
        with translating():
            return await aio(self.native.is_running)()

    @either
    @blocking
    async def set_timeout(self, timeout: float) -> None:
        """Sets its end, `timeout` seconds from now."""
        with translating():
            await aio(self.native.set_timeout)(max(1, timeout) * 1000)

    @either
    @blocking
    async def get_info(self) -> SandboxInfo:
        """Describes it."""
        with translating():
            return info_of(await aio(self.native.get)())

    @either
    @blocking
    async def pause(self) -> bool:
        """Saves it to disk with its memory. `connect` resumes it, as does the next use."""
        with translating():
            return (await aio(self.native.hibernate)())["state"] in PAUSED

    beta_pause = pause

    @blocking
    async def expose_port(self, port: int, *, wait: bool = False) -> str:
        """Exposes a port publicly, and returns its URL; with `wait` after a server listens there."""
        with translating():
            exposed = await aio(self.native.expose_port)(port, visibility="public", wait=wait)
        self._hosts[port] = exposed.url
        return self._hosts[port]

    def get_host(self, port: int) -> str:
        """Host, and path if there is one, of the URL of a port. The first call for a port exposes it publicly."""
        url = self._hosts.get(port) or self.expose_port(port)
        return url.partition("://")[2].rstrip("/")

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()
        self._close()

    def _close(self) -> None:
        _close_all(self._client, self.native._client)


def _close_all(*clients: Client) -> None:
    for each in clients:
        # Of asyncio too: calls of the sandbox's commands may wait.
        each._transport.close()
