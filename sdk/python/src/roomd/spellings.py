"""Errors for options and members that do not exist, with the alternative to each name of other sandbox SDKs.

Only type checkers check `**options: Unpack[…]`. Python itself accepts any name there, and the option would have no effect.
"""

import functools
import inspect
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar, get_args

T = TypeVar("T")

_LIMIT = "timeout_ms, in ms"
_START = "start(command), which leaves it running"
_URL = "expose_port(port).url"
OPTIONS = {
    "exec": {
        "timeout": _LIMIT, "timeout_seconds": _LIMIT, "timeout_sec": _LIMIT, "envs": "env", "env_vars": "env",
        "environment": "env", "workdir": "cwd", "work_dir": "cwd", "working_dir": "cwd", "input": "stdin",
        "background": _START, "detached": _START,
    },
    "create": {
        "timeout": "max_duration_seconds for the lifetime, wait_ms for the longest wait",
        "envs": "env", "env_vars": "env", "environment": "env", "secrets": "env", "metadata": "labels", "tags": "labels",
        "auto_stop_interval": "idle_timeout_seconds", "resources": "vcpus and memory_mib", "cpu": "vcpus", "cpus": "vcpus",
        "memory": "memory_mib", "memory_mb": "memory_mib", "image": "template", "runtime": "template",
        "template_id": "template", "network": "egress", "network_policy": "egress", "ports": "expose_port(port)",
        "allow_internet_access": "egress=[] for none",
    },
}
"""Options by other names: those of commands, and those of new sandboxes."""
OPTIONS |= {"start": OPTIONS["exec"], "run": OPTIONS["exec"], "create_sandbox": OPTIONS["create"]}

MEMBERS = {
    "Sandbox": {
        "commands": f"exec(command), or {_START}", "process": f"exec(command), or {_START}", "run": "exec(command)",
        "run_command": "exec(command)", "run_code": 'exec(["python3", "-c", code])', "fs": "files", "filesystem": "files",
        "pty": "open_terminal()", "kill": "destroy()", "stop": "destroy(), or hibernate() to continue later",
        "delete": "destroy()", "terminate": "destroy()", "close": "destroy()", "pause": "hibernate(), or standby()",
        "get_host": _URL, "get_preview_link": _URL, "tunnels": _URL, "domain": _URL, "get_info": "get()",
        "id": "sandbox_id", "write_file": "files.write(path, data)", "read_file": "files.read(path)",
        "extend_timeout": "set_timeout(ms), which counts from now",
    },
    "Files": {
        "make_dir": "mkdir(path)", "rename": "move(path, to)", "get_info": "stat(path)", "write_files": "write_many(files)",
        "write_file": "write(path, data)", "read_file": "read(path)", "upload": "upload_dir(local, path) or write(path, data)",
    },
    "CommandResult": {
        "returncode": "exit_code", "code": "exit_code", "output": "stdout", "result": "stdout", "text": "stdout",
    },
}
"""Members by other names, of each class."""


def strict(kind: type[T]) -> type[T]:
    """Makes unknown options of a class's methods and unknown members of its objects errors with a hint."""
    for name, value in list(vars(kind).items()):
        is_class_method = isinstance(value, classmethod)
        function = value.__func__ if is_class_method else value
        if inspect.isfunction(function) and (taken := _options_of(function)):
            checked = _checked(function, taken)
            setattr(kind, name, classmethod(checked) if is_class_method else checked)
    if not hasattr(kind, "__getattr__"):
        kind.__getattr__ = _missing  # type: ignore[attr-defined]
    return kind


def names_of(names: Any, what: str) -> list[str]:
    """A list of names from a caller. Rejects a string, which would count as the list of its letters."""
    if isinstance(names, (str, bytes, int)):
        raise TypeError(f"{what} must be a list of names, such as {[names if isinstance(names, str) else 'left']!r}.")
    return [*names]


def _options_of(function: Callable[..., Any]) -> frozenset[str]:
    """All keywords of a function whose last parameter is `**options: Unpack[…]`, otherwise none."""
    parameters = inspect.signature(function).parameters.values()
    for options in (kind for each in parameters if each.kind is each.VAR_KEYWORD for kind in get_args(each.annotation)):
        return frozenset({*(each.name for each in parameters), *options.__optional_keys__, *options.__required_keys__})
    return frozenset()


def _checked(function: Any, taken: frozenset[str]) -> Any:
    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        for name in kwargs:
            if name not in taken:
                hint = _alternative(name, OPTIONS.get(function.__name__, {}), taken)
                raise TypeError(f"{function.__qualname__}() has no option {name}{hint}")
        return function(*args, **kwargs)

    if hasattr(function, "coroutine"):
        checked.coroutine = _checked(function.coroutine, taken)  # type: ignore[attr-defined]
    return checked


def _missing(self: Any, name: str) -> Any:
    kind = type(self).__name__
    if name.startswith("_"):
        raise AttributeError(f"'{kind}' object has no attribute '{name}'", name=name, obj=self)
    hint = _alternative(name, MEMBERS.get(kind.removeprefix("Async"), {}), [each for each in dir(self) if each[0] != "_"])
    raise AttributeError(f"'{kind}' object has no attribute '{name}'{hint}", name=name, obj=self)


def _alternative(name: str, known: Mapping[str, str], among: Any) -> str:
    close = get_close_matches(name, among, 1)
    valid = known.get(name) or (close[0] if close else None)
    return f": use {valid}." if valid else "."
