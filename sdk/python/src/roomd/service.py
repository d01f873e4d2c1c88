"""Owns the beginning: a service, its rooms and its templates."""

import base64
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from types import TracebackType
from typing import Any, Unpack

from ._generated.schemas import Room as RoomRecord
from ._generated.schemas import Template, TemplateBuild
from .client import Client, given
from .errors import TemplateBuildError
from .room import Room
from .sandbox import create_room
from .trace import UsualTrace
from .transport import CallOptions


LAST_LINES = 20
"""The end of a build's output that its error shows."""
MOST_LAST_CHARACTERS = 16 * 1024


class Rooms:
    def __init__(self, client: Client) -> None:
        self._client = client

    def create(
        self,
        room_id: str | None = None,
        *,
        labels: Mapping[str, str] | None = None,
        ttl_seconds: int | None = None,
        keep: bool = False,
        **options: Unpack[CallOptions],
    ) -> Room:
        """Creates a room, by default with a name that is free; it is destroyed after `ttl_seconds`.

        The end of its `with` destroys it, and deletes its drive unless `keep`.
        """
        wanted = given(room_id=room_id, labels=labels, ttl_seconds=ttl_seconds)
        return Room(self._client, create_room(self._client, options, **wanted)["room_id"], is_own=True, keep=keep)

    def open(self, room_id: str) -> Room:
        """A room that there is. Leaving its `with` does not destroy it."""
        return Room(self._client, room_id)

    def list(self, **options: Unpack[CallOptions]) -> Iterator[RoomRecord]:
        return self._client.items("room_list", options)


class Templates:
    def __init__(self, client: Client) -> None:
        self._client = client

    def get(self, template_id: str, **options: Unpack[CallOptions]) -> Template:
        return self._client.call("template_get", options, template_id=template_id)

    def list(self, **options: Unpack[CallOptions]) -> Iterator[Template]:
        return self._client.items("template_list", options)

    def build(self, wanted: Mapping[str, Any], *, on_output: Callable[[str], None] | None = None) -> TemplateBuild:
        """Builds one of an image, and waits until it is ready. `wanted` is a TemplateCreateRequest.

        Raises TemplateBuildError, with the last lines of the output.
        """
        output = ""
        build = self._client.call("template_create", None, **wanted)
        name = {"template_id": build["template_id"], "build_id": build["build_id"]}
        with closing(self._client.events("template_build_stream", **name)) as events:
            for event in events:
                if event["type"] != "stdout":
                    continue
                text = base64.b64decode(event["data_b64"]).decode(errors="replace")
                output = (output + text)[-MOST_LAST_CHARACTERS:]
                if on_output is not None:
                    on_output(text)
        built = self._client.call("template_build_get", None, **name)
        if built["state"] != "ready":
            raise TemplateBuildError(built, output.rstrip().split("\n")[-LAST_LINES:])
        return built

    def remove(self, template_id: str, **options: Unpack[CallOptions]) -> None:
        self._client.call("template_remove", options, template_id=template_id)


class Roomd:
    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        ca: str | None = None,
        traceparent: UsualTrace | None = None,
    ) -> None:
        """What is not given is taken from the environment, as the Client says."""
        self.client = Client(url, api_key, ca, traceparent)
        """Every operation of the interface, by its name."""
        self.rooms = Rooms(self.client)
        self.templates = Templates(self.client)

    def close(self) -> None:
        """Ends the connections that nothing uses."""
        self.client.close()

    def __enter__(self) -> "Roomd":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
