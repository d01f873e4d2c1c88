"""Declarations of the package's public names: signatures and docstrings, without bodies. Prints JSON, one object a module."""

import ast
import json
import sys
from pathlib import Path

SOURCE = Path(__file__).parent / "src" / "roomd"
PACKAGES = ("", "compat/e2b")
"""The packages that programs import from."""


def is_public(name: str) -> bool:
    return name == "__init__" or not name.startswith("_")


def docstring(node: ast.stmt | None) -> str | None:
    """The text of a docstring or of an attribute's; None for any other statement."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return node.value.value
    return None


def bare(node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.stmt:
    """The function as its callers see it, with its docstring as its only statement."""
    node.body = node.body[:1] if docstring(node.body[0]) else [ast.Expr(ast.Constant(...))]
    forms = {each.id for each in node.decorator_list if isinstance(each, ast.Name)} & {"blocking", "iterating"}
    if not forms:
        return node
    node.decorator_list = [each for each in node.decorator_list if not isinstance(each, ast.Name) or each.id not in forms]
    if "iterating" in forms and isinstance(node.returns, ast.Subscript) and isinstance(node.returns.slice, ast.Tuple):
        item = ast.unparse(node.returns.slice.elts[0])
        node.returns = ast.parse(f"Generator[{item}, None, None]", mode="eval").body
    return ast.copy_location(ast.FunctionDef(**dict(ast.iter_fields(node))), node)


def members(body: list[ast.stmt]) -> list[ast.stmt]:
    """The public members of a class, each attribute followed by its docstring."""
    kept: list[ast.stmt] = []
    for index, node in enumerate(body):
        following = body[index + 1] if index + 1 < len(body) else None
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name == "__init__":
                kept.extend(attributes(node))
            if is_public(node.name):
                kept.append(bare(node))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and is_public(node.target.id):
            node.value = None
            kept.extend([node, *documented(following)])
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and is_public(node.targets[0].id):
            kept.extend([node, *documented(following)])
        elif index == 0 and docstring(node):
            kept.append(node)
        elif isinstance(node, ast.If):
            # Of two declarations the one for type checkers has no docstring.
            kept.extend(members(node.orelse))
    return kept or [ast.Expr(ast.Constant(...))]


def documented(following: ast.stmt | None) -> list[ast.stmt]:
    """The docstring of an attribute, if it has one."""
    return [] if following is None or docstring(following) is None else [following]


def attributes(init: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.stmt]:
    """The public attributes that `__init__` sets, as declarations, each followed by its docstring."""
    kept: list[ast.stmt] = []
    types = {each.arg: each.annotation for each in [*init.args.args, *init.args.kwonlyargs]}
    for node, following in zip(init.body, [*init.body[1:], None], strict=True):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if not isinstance(target, ast.Attribute) or not isinstance(target.value, ast.Name) or not is_public(target.attr):
            continue
        type_ = node.annotation if isinstance(node, ast.AnnAssign) else type_of(getattr(node, "value", None), types)
        declared = ast.AnnAssign(ast.Name(target.attr), type_ or ast.Name("Any"), None, simple=1)
        kept.extend([declared, *documented(following)])
    return kept


def type_of(value: ast.expr | None, types: dict[str, ast.expr | None]) -> ast.expr | None:
    """The type of a value that is an argument, or an object of a class, or one of the two."""
    if isinstance(value, ast.BoolOp):
        return type_of(value.values[-1], types)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        return value.func
    return types.get(value.id) if isinstance(value, ast.Name) else None


def declaration(node: ast.stmt, following: ast.stmt | None) -> str | None:
    """A public class, function or alias of a module; None for any other statement."""
    if isinstance(node, ast.ClassDef):
        node.body = members(node.body)
        return ast.unparse(node)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return ast.unparse(bare(node))
    if isinstance(node, ast.Assign | ast.AnnAssign):
        text = ast.unparse(node)
        note = docstring(following)
        return text if note is None else f'{text}\n"""{note}"""'
    return None


def name_of(node: ast.stmt) -> str | None:
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return node.name
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target if isinstance(node, ast.AnnAssign) else None
    return target.id if isinstance(target, ast.Name) else None


def exported(package: str) -> list[tuple[str, list[str]]]:
    """The names of a package by the module that declares them, in the order of its `__init__.py`."""
    modules: dict[str, list[str]] = {}
    for node in ast.parse((SOURCE / package / "__init__.py").read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module and not node.module.startswith("_"):
            module = f"{package}/{node.module}".removeprefix("/")
            modules.setdefault(module, []).extend(alias.asname or alias.name for alias in node.names)
    return list(modules.items())


def main() -> None:
    sections = []
    for module, names in [each for package in PACKAGES for each in exported(package)]:
        body = ast.parse((SOURCE / f"{module}.py").read_text()).body
        declared: dict[str, str] = {}
        for index, node in enumerate(body):
            name = name_of(node)
            if name is not None and name in names and name not in declared:
                text = declaration(node, body[index + 1] if index + 1 < len(body) else None)
                if text is not None:
                    declared[name] = text
        shown = [declared[name] for name in names if name in declared]
        sections.append({"module": module.replace("/", "."), "declarations": shown})
    json.dump(sections, sys.stdout)


main()
