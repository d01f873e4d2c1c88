"""Operations and types of the SDK, compared with a daemon's OpenAPI document and with known types."""

import types
import typing
import unittest
from collections.abc import Callable
from importlib import resources
from typing import Any, Literal, NotRequired, get_args, get_origin, get_type_hints

from roomd import AsyncClient, Client, Roomd, schemas
from roomd._generated import calls
from roomd._generated.operations import OPERATIONS
from roomd.client import _STREAMS, _sent

Hint = Any


class OperationsTest(unittest.TestCase):
    def test_match_those_of_the_service(self) -> None:
        with Roomd() as roomd:
            document: Any = roomd.client.call("openapi_get")
        told = {
            operation["operationId"]: (method.upper(), path)
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
        }
        self.assertEqual({name: (each.method, each.path) for name, each in OPERATIONS.items()}, told)
        self.assertGreater(len(told), 100)

    def test_can_all_be_called(self) -> None:
        ways: dict[str, list[str]] = {"json": [], "text": [], "events": [], "bytes": [], "socket": []}
        for name, operation in OPERATIONS.items():
            fields = {word.strip("{}"): "x" for word in operation.path.split("/") if word.startswith("{")}
            sent = _sent(name, {**fields, **dict.fromkeys(operation.query, "y")})
            self.assertNotIn("{", sent.path)
            self.assertEqual(sent.path.count("=y"), len(operation.query))
            ways[operation.answer].append(name)
        self.assertEqual(set(ways["events"]), set(_STREAMS))
        self.assertEqual(set(ways["socket"]), {"terminal_attach", "screen_view", "live_socket"})

    def test_have_a_typed_call_each(self) -> None:
        wanted = [name for name, each in OPERATIONS.items() if each.answer in ("json", "text")]
        for kind in (calls.Call, calls.AsyncCall):
            typed = [get_args(get_type_hints(each)["name"])[0] for each in _overloads_of(kind)]
            self.assertEqual(typed, wanted)

    def test_have_their_methods_in_both_clients(self) -> None:
        for name in ("call", "events", "download", "upload", "items"):
            self.assertTrue(hasattr(Client, name) and hasattr(AsyncClient, name), name)

    def test_the_package_is_marked_as_typed(self) -> None:
        self.assertTrue(resources.files("roomd").joinpath("py.typed").is_file())


def _overloads_of(protocol: type) -> list[Callable[..., Any]]:
    """The overloads of a protocol's `__call__`, which have no implementation to look them up by."""

    def named() -> None: ...

    named.__module__, named.__qualname__ = protocol.__module__, f"{protocol.__qualname__}.__call__"
    return list(typing.get_overloads(named))


def _is(wanted: Hint) -> Callable[[Hint], bool]:
    return lambda hint: hint == wanted


def _words(*wanted: str) -> Callable[[Hint], bool]:
    """Matches literals that include these."""
    return lambda hint: set(wanted) <= set(_literals(hint))


def _literals(hint: Hint) -> list[str]:
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    if get_origin(hint) is NotRequired or isinstance(hint, types.UnionType) or get_origin(hint) is typing.Union:
        return [word for each in get_args(hint) for word in _literals(each)]
    return []


SHAPES: list[tuple[Any, str, Callable[[Hint], bool]]] = [
    (schemas.Sandbox, "template_digest", _is(str | None)),
    (schemas.Sandbox, "memory_mib", _is(int)),
    (schemas.Sandbox, "state", _words("creating", "running", "paused", "hibernated", "failed", "destroyed")),
    (schemas.Sandbox, "status", _is(schemas.SandboxStatus)),
    (schemas.Sandbox, "exit", _is(schemas.SandboxExit | None)),
    (schemas.Sandbox, "labels", _is(dict[str, str])),
    (schemas.Execution, "state", _words("running", "exited")),
    (schemas.Execution, "output", _is(schemas.SavedOutput | None)),
    (schemas.ExitEvent, "exit_code", _is(int | None)),
    (schemas.ExitEvent, "type", _is(Literal["exit"])),
    (schemas.ExitEvent, "timed_out", _is(bool)),
    (schemas.Message, "payload", _is(Any)),
    (schemas.Message, "destinations", _is(list[str] | None)),
    (schemas.Message, "kind", _is(Literal["event", "request", "response"])),
    (schemas.AgentSendRequest, "ttl_ms", _is(NotRequired[int])),
    (schemas.AgentSendRequest, "destination", _is(NotRequired[str | None])),
    (schemas.SentMessage, "reply", _is(NotRequired[schemas.Message | None])),
    (schemas.Problem, "hint", _is(str | None)),
    (schemas.Problem, "errors", _is(list[schemas.FieldError])),
    (schemas.Problem, "code", _words("room_not_found", "barrier_timeout", "shutting_down")),
    (schemas.RoomCreateRequest, "room_id", _is(str)),
    (schemas.RoomCreateRequest, "ttl_seconds", lambda hint: get_origin(hint) is NotRequired),
    (schemas.FsMoveRequest, "from", _is(str)),
    (schemas.AgentPage, "items", _is(list[schemas.Agent])),
    (schemas.AgentPage, "next_cursor", _is(str | None)),
]


class TypesTest(unittest.TestCase):
    def test_match_the_answers_of_the_service(self) -> None:
        for shape, field, is_right in SHAPES:
            hint = get_type_hints(shape, include_extras=True)[field]
            self.assertTrue(is_right(hint), f"{shape.__name__}.{field} is {hint}")

    def test_of_streams_differ_in_their_type_field(self) -> None:
        events = get_args(schemas.ExecutionEvent)
        words = [get_type_hints(each)["type"] for each in events]
        self.assertIn(schemas.ExitEvent, events)
        self.assertEqual(len(set(map(str, words))), len(events))

    def test_distinguish_required_and_optional_fields(self) -> None:
        self.assertEqual(schemas.RoomCreateRequest.__required_keys__, frozenset({"room_id"}))
        self.assertIn("sandbox_id", schemas.Sandbox.__required_keys__)
        self.assertIn("topic", schemas.AgentSendRequest.__optional_keys__)

    def test_an_answer_has_the_fields_of_its_type(self) -> None:
        with Roomd() as roomd, roomd.rooms.create() as room:
            for answer, shape in ((room.get(), schemas.Room), (room.drive.write("/x", "x"), schemas.WrittenFile)):
                self.assertLessEqual(shape.__required_keys__, set(answer))
                self.assertLessEqual(set(answer), shape.__required_keys__ | shape.__optional_keys__)
