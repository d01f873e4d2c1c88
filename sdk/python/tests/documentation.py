"""Public members of the package, and those without a docstring. Prints JSON.

Docstrings of attributes follow them in the source: only the parser sees them.
"""

import ast
import inspect
import json
import sys
from collections.abc import Iterator
from enum import Enum
from functools import cache

import roomd
from roomd.compat import e2b

KINDS = (staticmethod, classmethod, property, e2b.variant.either)


@cache
def parsed(module: str) -> list[ast.stmt]:
    """The statements of a module."""
    return ast.parse(inspect.getsource(sys.modules[module])).body


def members(kind: type) -> Iterator[tuple[str, bool]]:
    """The public members that a class declares itself, and whether each has a docstring."""
    for name, value in vars(kind).items():
        if name.startswith("_") and name != "__init__" or name == "__init__" and "__dataclass_fields__" in vars(kind):
            continue
        if inspect.isfunction(value) or isinstance(value, KINDS):
            inner = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
            yield name, bool(inner.__doc__)
    [tree] = [each for each in parsed(kind.__module__) if isinstance(each, ast.ClassDef) and each.name == kind.__name__]
    if not issubclass(kind, Enum):
        yield from attributes(tree.body, ast.Name)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            yield from attributes(node.body, ast.Attribute)


def attributes(body: list[ast.stmt], of: type[ast.expr]) -> Iterator[tuple[str, bool]]:
    """The public attributes that are assigned or annotated in a body, and whether a docstring follows each."""
    for node, following in zip(body, [*body[1:], None], strict=True):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if not isinstance(target, of):
            continue
        name = target.id if isinstance(target, ast.Name) else getattr(target, "attr", "_")
        is_call = isinstance(node, ast.Assign) and of is ast.Name
        if not name.startswith("_") and not is_call:
            yield name, isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)


def main() -> None:
    found: list[str] = []
    undocumented: list[str] = []
    for package in (roomd, e2b):
        for name in package.__all__:
            kind = getattr(package, name)
            if not inspect.isclass(kind):
                if inspect.isfunction(kind) and not kind.__doc__:
                    undocumented.append(name)
                continue
            if not vars(kind).get("__doc__"):
                undocumented.append(name)
            for member, has in members(kind):
                found.append(f"{name}.{member}")
                if not has:
                    undocumented.append(f"{name}.{member}")
    json.dump({"members": found, "undocumented": undocumented}, sys.stdout)


main()
