"""Runner of the cases of test/unit/sdk/policy-cases.ts: reads one case per line, makes its calls, and prints their outcomes."""

import asyncio
import dataclasses
import inspect
import json
import re
import sys
from collections.abc import Callable
from typing import Any
from unittest import mock

from roomd import AsyncRoomd, AsyncSandbox, Roomd, Sandbox

FIELDS = (
    *("code", "status", "retryable", "hint", "request_id", "details", "errors", "fault", "url"),
    *("problems", "sandboxes", "build", "last_lines"),
)


class _Clients:
    """The objects that the calls of a case start from, by name."""

    def __init__(self, url: str, client: dict[str, Any], is_async: bool) -> None:
        options = _options(client)
        roomd: Any = (AsyncRoomd if is_async else Roomd)(url, **options)
        self.client, self.rooms, self.templates = roomd.client, roomd.rooms, roomd.templates
        self.room = roomd.rooms.open("a")
        self.sandbox, self.agent = self.room.sandbox("b"), self.room.agent("b")
        self.execution = self.sandbox.execution("c")
        self.close = roomd.close
        self.last: Any = None
        self._kind: Any = AsyncSandbox if is_async else Sandbox
        self._connection = {"url": url, **options}

    def target_of(self, name: str) -> Callable[..., Any]:
        root, *names = name.split(".")
        if root == "Sandbox":
            return lambda *args, **options: getattr(self._kind, names[0])(*args, **self._connection, **options)
        target = getattr(self, root)
        for each in names:
            target = getattr(target, _snake(each))
        return target

    def call(self, call: dict[str, Any]) -> Any:
        target, options = self.target_of(call["do"]), _options(call.get("options", {}))
        args = [iter([each.encode() for each in arg["parts"]]) if _has_parts(arg) else arg for arg in call["args"]]
        if call["do"].startswith("client."):
            return target(args[0], options, **args[1])
        return target(*args, **options)


def _has_parts(arg: Any) -> bool:
    return isinstance(arg, dict) and list(arg) == ["parts"]


def _snake(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def _camel(name: str) -> str:
    return re.sub("_(.)", lambda letter: letter[1].upper(), name)


def _options(options: dict[str, Any]) -> dict[str, Any]:
    return {_snake(name): value for name, value in options.items()}


async def _finished(value: Any) -> Any:
    """The result of a call, read to its end, as JSON."""
    if inspect.isawaitable(value):
        value = await value
    if inspect.isasyncgen(value):
        return [_json(each) async for each in value]
    if inspect.isgenerator(value):
        return [_json(each) for each in value]
    return value


def _json(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dict):
        return {name: _json(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_json(each) for each in value]
    if dataclasses.is_dataclass(value) and hasattr(value, "stdout"):
        names = [each.name for each in dataclasses.fields(value)]
        return {_camel(name): _json(getattr(value, name)) for name in [*names, "stdout", "stderr"]}
    return value if value is None or isinstance(value, (str, int, float)) else None


def _error(error: Exception) -> dict[str, Any]:
    fields = {_camel(name): _json(getattr(error, name)) for name in FIELDS if hasattr(error, name)}
    return {"name": type(error).__name__, "message": str(error), **fields}


async def _outcomes(case: dict[str, Any]) -> list[dict[str, Any]]:
    clients: _Clients | None = None
    outcomes: list[dict[str, Any]] = []
    for call in case["calls"]:
        try:
            clients = clients or _Clients(case["url"], case["client"], case["isAsync"])
            clients.last = await _finished(clients.call(call))
            if hasattr(clients.last, "text"):
                clients.last = await _finished(clients.last.text())
            outcomes.append({"value": _json(clients.last)})
        except Exception as error:
            outcomes.append({"error": _error(error)})
    if clients is not None:
        clients.close()
    return outcomes


if __name__ == "__main__":
    for line in sys.stdin:
        case = json.loads(line)
        with mock.patch("random.uniform", lambda low, high: low + (high - low) * case["random"]):
            print(json.dumps(asyncio.run(_outcomes(case))), flush=True)
