"""The mutants of a module: its source with one small fault each."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

_OTHERS: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt), ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,), ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,), ast.Mult: (ast.Div,), ast.Div: (ast.Mult,), ast.FloorDiv: (ast.Mult,),
    ast.Mod: (ast.Mult,), ast.Pow: (ast.Mult,), ast.BitAnd: (ast.BitOr,), ast.BitOr: (ast.BitAnd,),
    ast.BitXor: (ast.BitOr,), ast.LShift: (ast.RShift,), ast.RShift: (ast.LShift,),
    ast.And: (ast.Or,), ast.Or: (ast.And,), ast.Break: (ast.Continue,), ast.Continue: (ast.Break,),
}  # fmt: skip
_PAIRS = (("min", "max"), ("any", "all"), ("floor", "ceil"), ("minimum", "maximum"))
_NAMES = {**dict(_PAIRS), **{second: first for first, second in _PAIRS}}
# Types and decorators are for the reader, and `zip(strict=...)` is a check of our own.
_SKIPPED = {"annotation", "returns", "decorator_list"}
# Of a figure: who looks at it misses no half point, and a test that repeats it says nothing.
_LOOKS = {
    "alpha", "capsize", "elinewidth", "figsize", "fontsize", "frameon", "labelsize", "linestyle",
    "linewidth", "markersize", "pad",
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A fault in a module: its line, what became what there, and the compiled module with it.

    `function` has the name and the first line of the function around it, as its code object does;
    None for what runs when the module is imported.
    """

    path: Path
    line: int
    text: str
    change: str
    function: tuple[str, int] | None
    code: CodeType


def mutants(path: Path) -> list[Mutant]:
    """Return all mutants of a module, in the order of its lines."""
    source = path.read_text(encoding="utf-8")
    tree, lines, found = ast.parse(source), source.splitlines(), []
    for holder, key, node, function in _places(tree, None):
        for other in _instead_of(node):
            holder[key] = ast.fix_missing_locations(ast.copy_location(other, node))
            code = compile(tree, str(path.resolve()), "exec")
            holder[key] = node
            change = " -> ".join(ast.unparse(part).splitlines()[0] for part in (node, other))
            text = lines[node.lineno - 1].strip()
            found.append(Mutant(path, node.lineno, text, change, function, code))
    return sorted(found, key=lambda mutant: mutant.line)


def _places(
    parent: ast.AST, function: tuple[str, int] | None
) -> Iterator[tuple[Any, Any, Any, tuple[str, int] | None]]:
    """Yield each node that has a line, where it is held, and the outermost function around it."""
    if isinstance(parent, ast.keyword) and parent.arg in {"strict", *_LOOKS}:
        return
    for field, value in ast.iter_fields(parent):
        # Defaults of arguments are evaluated where the function is made.
        inside = function
        if function is None and isinstance(parent, ast.FunctionDef) and field == "body":
            first = min([parent.lineno, *(part.lineno for part in parent.decorator_list)])
            inside = (parent.name, first)
        holder: Any = value if isinstance(value, list) else vars(parent)
        for key in range(len(value)) if holder is value else [field]:
            if isinstance(holder[key], ast.AST) and field not in _SKIPPED:
                node = holder[key]
                if hasattr(node, "lineno"):
                    yield holder, key, node, inside
                yield from _places(node, inside)


def _instead_of(node: Any) -> Iterator[ast.AST]:
    """Yield what a mistaken author could have written instead of a node."""
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            for kind in _OTHERS[type(operator)]:
                yield _with(node, ops=[*node.ops[:place], kind(), *node.ops[place + 1 :]])
    elif isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign):
        yield from (_with(node, op=kind()) for kind in _OTHERS.get(type(node.op), ()))
    elif isinstance(node, ast.Break | ast.Continue):
        yield from (kind() for kind in _OTHERS[type(node)])
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.Constant):
        yield from (ast.Constant(value) for value in _neighbours(node.value))
    elif isinstance(node, ast.Name | ast.Attribute):
        field = "id" if isinstance(node, ast.Name) else "attr"
        if getattr(node, field) in _NAMES:
            yield _with(node, **{field: _NAMES[getattr(node, field)]})
    elif isinstance(node, ast.Slice):
        for end in ("lower", "upper"):
            bound = getattr(node, end)
            if bound is not None and not isinstance(bound, ast.Constant):
                yield _with(node, **{end: ast.BinOp(bound, ast.Add(), ast.Constant(1))})
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        is_other = isinstance(node.test, ast.Compare | ast.BoolOp | ast.UnaryOp)
        if not is_other and ast.unparse(node.test) != "TYPE_CHECKING":
            yield _with(node, test=ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.Return) and not isinstance(node.value, ast.Constant | None):
        yield ast.Return(ast.Constant(None))
    elif isinstance(node, ast.Raise) or (
        isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant | ast.Yield)
    ):
        yield ast.Pass()


def _with(node: ast.AST, **fields: Any) -> ast.AST:
    other = copy.copy(node)
    vars(other).update(fields)
    return other


def _neighbours(value: object) -> tuple[object, ...]:
    """Return what a constant becomes: whole numbers one more and one less, others the double."""
    if isinstance(value, bool):
        return (not value,)
    if isinstance(value, int):
        return value + 1, value - 1
    return (2 * value or 1.0,) if isinstance(value, float) else ()
