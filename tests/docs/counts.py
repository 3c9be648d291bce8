"""Counts of methods and their promises, from the registry, and counts of recorded verdicts.

`python -m tests.docs.counts` writes them anew into the pages (`make docs-outputs`).
"""

from __future__ import annotations

import csv
import re
import sys
from collections import Counter
from fnmatch import fnmatch

from dprepro.methods.entry import Guarantee
from dprepro.methods.registry import all_methods
from dprepro.papers.document import load_documents
from dprepro.privacy.guarantee_status import Noise
from tests.docs.pages import ROOT

WORDS = (
    "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve",
)  # fmt: skip
SENTENCES = (
    ("README.md", "All but {floating} private methods draw exact noise"),
    ("README.md", "{Floating} methods compute their noise in floating point"),
    ("PRIVACY.md", "{#exact} of the {#private} methods with a privacy budget draw exact noise"),
    ("PRIVACY.md", "The other {floating} remain in floating point"),
    ("PRIVACY.md", "in {#exact} of {#private} methods, whose noise is exact"),
    ("PRIVACY.md", "the ledger names it in the other {floating}"),
    (
        "README.md",
        "Of the {#possible} cells of the DP-EBM paper that can be run, {#equivalent} are "
        "equivalent, {#different} are different, and {#inconclusive} are inconclusive",
    ),
    ("README.md", "{#chosen} of these cells stand in columns that were chosen so"),
    ("docs/verdicts.md", "For the {#possible} cells of the DP-EBM paper that can be run"),
    ("docs/verdicts.md", "by 0.4 % in a document of {#possible} cells"),
)
"""Pages and words of them; in braces counts in words, behind # in digits."""
TABLE = re.compile(
    r"(?<=<!-- begin: documents -->\n\n).*?(?=\n\n<!-- end: documents -->)", re.DOTALL
)
"""Where docs/verdicts.md has the verdicts by document."""
PLACE = re.compile(r"\{(#?)(\w+)\}")
PROMISES = {
    Guarantee.NONE: "none",
    Guarantee.PURE: "epsilon",
    Guarantee.APPROXIMATE: "(epsilon, delta)",
}


def recorded() -> dict[str, Counter[str]]:
    """Return how often `results/verdicts.csv` has each verdict, by document."""
    found: dict[str, Counter[str]] = {}
    with (ROOT / "results/verdicts.csv").open() as file:
        for row in csv.DictReader(file):
            if row["verdict"]:
                found.setdefault(row["paper"], Counter())[row["verdict"]] += 1
    return found


def documents() -> str:
    """Return the verdicts by document as a table in Markdown."""
    names = ("equivalent", "better", "worse", "inconclusive")
    lines = [f"| document | can be run | {' | '.join(names)} |", f"| --- |{' ---: |' * 5}"]
    rows = {**recorded(), "**all**": sum(recorded().values(), Counter())}
    for paper, own in rows.items():
        numbers = [own.total() - own["impossible"], *(own[name] for name in names)]
        lines.append(f"| {paper} | {' | '.join(map(str, numbers))} |")
    return "\n".join(lines)


def counted() -> dict[str, int]:
    """Return what can be counted."""
    paper, layout = recorded()["dp-ebm-2021"], load_documents()["dp-ebm-2021"]
    private = [method for method in all_methods().values() if method.takes_epsilon]
    exact = sum(method.noise is Noise.EXACT for method in private)
    return {
        "private": len(private),
        "exact": exact,
        "floating": len(private) - exact,
        "possible": paper.total() - paper["impossible"],
        "equivalent": paper["equivalent"],
        "different": paper["better"] + paper["worse"],
        "inconclusive": paper["inconclusive"],
        "chosen": sum(layout.choice_of(cell) is not None for cell in layout.cells()),
    }


def written(place: re.Match[str]) -> str:
    """Return the count of a place in a sentence."""
    number = counted()[place[2].lower()]
    if place[1] or number >= len(WORDS):
        return f"{number}"
    return WORDS[number].capitalize() if place[2][0].isupper() else WORDS[number]


def pattern(sentence: str) -> re.Pattern[str]:
    """Return what finds a sentence with any counts, however its lines are broken."""
    parts = PLACE.sub("\0", sentence).split("\0")
    return re.compile(r"\b(\w+)\b".join(r"\s+".join(map(re.escape, p.split(" "))) for p in parts))


def renewed(page: str, text: str) -> tuple[str, list[str]]:
    """Return a page with its counts and promises as they are now, and the sentences it lacks."""
    lost = []
    for place, sentence in SENTENCES:
        if place != page:
            continue
        counts = [written(found) for found in PLACE.finditer(sentence)]
        found = pattern(sentence).search(text)
        if found is None:
            lost.append(sentence)
            continue
        for group in range(len(counts), 0, -1):
            start, end = found.span(group)
            text = text[:start] + counts[group - 1] + text[end:]
    text = TABLE.sub(lambda _: documents(), text)
    return re.sub(r"^\| `.*$", lambda line: _promised(line[0]), text, flags=re.MULTILINE), lost


def _promised(line: str) -> str:
    """Return a row of methods, promise and neighbours with what the registry has of them."""
    cells = line.split(" | ")
    if len(cells) != 4 or cells[1] not in PROMISES.values():
        return line
    names = re.findall(r"`([^`]+)`", cells[0])
    methods = [m for n, m in all_methods().items() if any(fnmatch(n, name) for name in names)]
    (promise,) = {PROMISES[method.guarantee] for method in methods}
    (neighbours,) = {str(method.adjacency) for method in methods}
    return " | ".join([cells[0], promise, neighbours, cells[3]])


def main() -> int:
    """Write the pages; 1 if one lacks a sentence."""
    gone = 0
    for page in dict.fromkeys(page for page, _ in SENTENCES):
        text, lost = renewed(page, (ROOT / page).read_text(encoding="utf-8"))
        (ROOT / page).write_text(text)
        gone += len(lost)
        for sentence in lost:
            print(f"{page}: no longer there: {sentence}")
    return 1 if gone else 0


if __name__ == "__main__":
    sys.exit(main())
