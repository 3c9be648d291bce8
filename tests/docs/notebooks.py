"""Run the cells of the notebooks in docs/, as Jupyter would.

`python -m tests.docs.notebooks` writes their results anew (`make docs-outputs`).
"""

from __future__ import annotations

import ast
import io
import json
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from tests.docs.pages import ROOT

NOTEBOOKS = sorted((ROOT / "docs").glob("*.ipynb"))


def run(notebook: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """Run all code cells in one namespace, and yield the outputs of each."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for count, cell in enumerate(cells, start=1):
        yield list(_outputs("".join(cell["source"]), names, count))


def _outputs(source: str, names: dict[str, Any], count: int) -> Iterator[dict[str, Any]]:
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    value, printed = None, io.StringIO()
    with redirect_stdout(printed):
        exec(compile(ast.Module(body, []), f"cell {count}", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), f"cell {count}", "eval"), names)
    if printed.getvalue():
        text = printed.getvalue().splitlines(keepends=True)
        yield {"name": "stdout", "output_type": "stream", "text": text}
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        yield {
            "data": data,
            "execution_count": count,
            "metadata": {},
            "output_type": "execute_result",
        }


def renewed(path: Path) -> str:
    """Return the text of a notebook with the results that its cells have now."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    code = (cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    for count, (cell, outputs) in enumerate(zip(code, run(notebook), strict=True), start=1):
        cell["outputs"], cell["execution_count"] = outputs, count
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    """Run all notebooks, and write what their cells give."""
    for path in NOTEBOOKS:
        path.write_text(renewed(path), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
