"""Entry point of the SDK: a service, its rooms and its templates."""

import base64
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from types import TracebackType
from typing import Any, Unpack

from ._generated.schemas import Room as RoomRecord
from ._generated.schemas import Template, TemplateBuild
from .client import Client, given
from .coroutines import aio, aiter_of, blocking, iterating
from .errors import TemplateBuildError
from .room import Room
from .sandbox import create_room
from .trace import UsualTrace
from .spellings import strict
from .transport import CallOptions


LAST_LINES = 20
"""Lines from the end of a build's output that the error includes."""
MAX_LAST_CHARACTERS = 16 * 1024


@strict
class Rooms:
    """Rooms of the organization."""

    def __init__(self, client: Client) -> None:
        """The rooms of the service of a client."""
        self._client = client

    @blocking
    async def create(
        self,
        room_id: str | None = None,
        *,
        labels: Mapping[str, str] | None = None,
        ttl_seconds: int | None = None,
        keep: bool = False,
        **options: Unpack[CallOptions],
    ) -> Room:
        """Creates a room, with a generated name by default; it is destroyed after `ttl_seconds`.

        The end of its `with` destroys it, and deletes its drive unless `keep`.
        """
        wanted = given(room_id=room_id, labels=labels, ttl_seconds=ttl_seconds)
        made = await create_room(self._client, options, **wanted)
        return Room(self._client, made["room_id"], is_own=True, keep=keep)

    def open(self, room_id: str) -> Room:
        """A room that exists. It is not destroyed at the end of a `with` block."""
        return Room(self._client, room_id)

    @iterating
    def list(self, **options: Unpack[CallOptions]) -> AsyncGenerator[RoomRecord, None]:
        """Yields the records of all rooms."""
        return aiter_of(self._client.items)("room_list", options)


@strict
class Templates:
    """Templates that sandboxes start from."""

    def __init__(self, client: Client) -> None:
        """The templates of the service of a client."""
        self._client = client

    @blocking
    async def get(self, template_id: str, **options: Unpack[CallOptions]) -> Template:
        """Describes a template."""
        return await self._client._call("template_get", options, template_id=template_id)

    @iterating
    def list(self, **options: Unpack[CallOptions]) -> AsyncGenerator[Template, None]:
        """Yields all templates."""
        return aiter_of(self._client.items)("template_list", options)

    @blocking
    async def build(
        self, wanted: Mapping[str, Any], *, on_output: Callable[[str], None] | None = None
    ) -> TemplateBuild:
        """Builds a template from an image and waits until it is ready.

        `wanted` has the fields of `schemas.TemplateCreateRequest`. Raises TemplateBuildError with the last lines of the
        output.
        """
        output = ""
        build = await self._client._call("template_create", None, **wanted)
        name = {"template_id": build["template_id"], "build_id": build["build_id"]}
        async with aclosing(aiter_of(self._client.events)("template_build_stream", **name)) as events:
            async for event in events:
                if event["type"] != "stdout":
                    continue
                text = base64.b64decode(event["data_b64"]).decode(errors="replace")
                output = (output + text)[-MAX_LAST_CHARACTERS:]
                if on_output is not None:
                    on_output(text)
        built = await self._client._call("template_build_get", None, **name)
        if built["state"] != "ready":
            raise TemplateBuildError(built, output.rstrip().split("\n")[-LAST_LINES:])
        return built

    @blocking
    async def remove(self, template_id: str, **options: Unpack[CallOptions]) -> None:
        """Deletes a template."""
        await self._client._call("template_remove", options, template_id=template_id)


@strict
class Roomd:
    """A roomd service."""

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        ca: str | None = None,
        traceparent: UsualTrace | None = None,
    ) -> None:
        """Connects to a service. Options that are absent come from the environment: see `Client`."""
        self.client = Client(url, api_key, ca, traceparent)
        """All operations of the HTTP interface, by name."""
        self.rooms = Rooms(self.client)
        """Rooms of the organization."""
        self.templates = Templates(self.client)
        """Templates that sandboxes start from."""

    def close(self) -> None:
        """Closes idle connections."""
        self.client.close()

    def __enter__(self) -> "Roomd":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
