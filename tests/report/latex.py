"""Read LaTeX strictly: a real engine where one is installed, a parser everywhere."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from pylatexenc.latexwalker import (
    LatexEnvironmentNode,
    LatexGroupNode,
    LatexMacroNode,
    LatexNode,
    LatexSpecialsNode,
    LatexWalker,
    get_default_latex_context_db,
)
from pylatexenc.macrospec import EnvironmentSpec, std_environment

ENGINES = ("pdflatex", "lualatex", "xelatex", "tectonic")


def compile_with_an_engine(tables: str, folder: Path) -> Path | None:
    """Compile `tables` and return the PDF; None where no engine is installed."""
    engine = next((name for name in ENGINES if shutil.which(name)), None)
    if engine is None:
        return None
    source = folder / "tables.tex"
    source.write_text(
        "\\documentclass{article}\n\\usepackage{booktabs}\n\\begin{document}\n"
        f"{tables}\n\\end{{document}}\n"
    )
    options = [] if engine == "tectonic" else ["-interaction=nonstopmode", "-halt-on-error"]
    done = subprocess.run(
        [engine, *options, source.name], cwd=folder, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return source.with_suffix(".pdf")


def parse(text: str) -> list[LatexNode]:
    """Return the nodes of `text`; raises `LatexWalkerParseError` on anything unbalanced."""
    context = get_default_latex_context_db()
    alignment: EnvironmentSpec = std_environment("tabular", "{")
    context.add_context_category("tables", environments=[alignment], prepend=True)
    walker = LatexWalker(text, latex_context=context, tolerant_parsing=False)
    return list(walker.get_latex_nodes()[0])


def environments(nodes: list[LatexNode], name: str) -> list[LatexEnvironmentNode]:
    """Return the environments called `name`, however deep."""
    found = []
    for node in nodes:
        if isinstance(node, LatexEnvironmentNode):
            found += [node] if node.environmentname == name else []
            found += environments(node.nodelist, name)
    return found


def columns(tabular: LatexEnvironmentNode) -> int:
    """Return the number of columns that a tabular declares."""
    (declared,) = [n for n in tabular.nodeargd.argnlist if isinstance(n, LatexGroupNode)]
    return len(declared.latex_verbatim().strip("{}"))


def row_lengths(tabular: LatexEnvironmentNode) -> list[int]:
    """Return the number of fields in each row of a tabular."""
    lengths, fields = [], 1
    for node in tabular.nodelist:
        if isinstance(node, LatexSpecialsNode) and node.specials_chars == "&":
            fields += 1
        elif isinstance(node, LatexMacroNode) and node.macroname == "\\":
            lengths.append(fields)
            fields = 1
    return lengths


def macros(nodes: list[LatexNode]) -> set[str]:
    """Return the names of all macros used, however deep."""
    found = set()
    for node in nodes:
        if isinstance(node, LatexMacroNode):
            found.add(node.macroname)
            arguments = node.nodeargd.argnlist if node.nodeargd else []
            found |= macros([a for a in arguments if a is not None])
        elif hasattr(node, "nodelist"):
            found |= macros(node.nodelist)
    return found
