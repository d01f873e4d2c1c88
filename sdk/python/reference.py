"""Declarations of the package's public names: signatures and docstrings, without bodies. Prints JSON, one object a module."""

import ast
import json
import sys
from pathlib import Path

SOURCE = Path(__file__).parent / "src" / "roomd"


def is_public(name: str) -> bool:
    return name == "__init__" or not name.startswith("_")


def docstring(node: ast.stmt | None) -> str | None:
    """The text of a docstring or of an attribute's; None for any other statement."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return node.value.value
    return None


def bare(node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.stmt:
    """The function with its docstring as its only statement."""
    node.body = node.body[:1] if docstring(node.body[0]) else [ast.Expr(ast.Constant(...))]
    return node


def members(body: list[ast.stmt]) -> list[ast.stmt]:
    """The public members of a class, each attribute followed by its docstring."""
    kept: list[ast.stmt] = []
    for index, node in enumerate(body):
        following = body[index + 1] if index + 1 < len(body) else None
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if is_public(node.name):
                kept.append(bare(node))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and is_public(node.target.id):
            node.value = None
            kept.append(node)
            if following is not None and docstring(following):
                kept.append(following)
        elif index == 0 and docstring(node):
            kept.append(node)
    return kept or [ast.Expr(ast.Constant(...))]


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


def exported() -> list[tuple[str, list[str]]]:
    """The names of the package by the module that declares them, in the order of __init__.py."""
    modules: dict[str, list[str]] = {}
    for node in ast.parse((SOURCE / "__init__.py").read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module and not node.module.startswith("_"):
            modules.setdefault(node.module, []).extend(alias.asname or alias.name for alias in node.names)
    return list(modules.items())


def main() -> None:
    sections = []
    for module, names in exported():
        body = ast.parse((SOURCE / f"{module}.py").read_text()).body
        declared = {}
        for index, node in enumerate(body):
            name = name_of(node)
            if name in names and name not in declared:
                text = declaration(node, body[index + 1] if index + 1 < len(body) else None)
                if text is not None:
                    declared[name] = text
        sections.append({"module": module, "declarations": [declared[name] for name in names if name in declared]})
    json.dump(sections, sys.stdout)


main()
