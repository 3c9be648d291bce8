"""Every table and figure of the documents is a table here, a picture, a claim, or said not to be.

If $DPREPRO_PAPERS names a folder with the texts of the documents, as PAPER.txt, the numbers of
tables and figures are compared with those that the texts mention.
"""

import os
import re
from pathlib import Path

import pytest

from dprepro.judge.claims import load_claims
from dprepro.papers.document import Unchecked, load_documents
from dprepro.papers.published_cell import load_published

DOCUMENTS = load_documents()
PAPERS = os.environ.get("DPREPRO_PAPERS")
# How many tables and figures each document numbers. The slides number none.
NUMBERED = {
    "dp-ebm-2021": {"Table": 3, "Figure": 5},
    "dp-gbdt-2021": {"Table": 0, "Figure": 0},
    "dp-llm-2020": {"Table": 0, "Figure": 10},
    "dp-xgboost-2022": {"Table": 0, "Figure": 0},
    "lazybb-2022": {"Table": 11, "Figure": 3},
    "lazybb-2022-authors": {"Table": 0, "Figure": 0},
    "maddock-2022": {"Table": 0, "Figure": 6},
    "privatree-2023": {"Table": 0, "Figure": 0},  # numbered in Roman
    "replication-report-2025": {"Table": 3, "Figure": 1},
    "replication-slides-2025": {"Table": 0, "Figure": 0},
    "sbdt-2024": {"Table": 0, "Figure": 0},
}
# Documents of which only results of the authors' code are at hand.
WITHOUT_TEXT = {
    "dp-gbdt-2021", "dp-xgboost-2022", "lazybb-2022-authors", "privatree-2023", "sbdt-2024",
}  # fmt: skip
# The report speaks of Figure 5 of the DP-EBM paper, too.
OTHERS = {"replication-report-2025": {("Figure", 5)}}


def of_layouts(document):
    """Tables "2" and figures "fig5", "fig5-maps", "figure-2" of the layouts, and all pictures."""
    for name in document.tables:
        if match := re.fullmatch(r"(fig(?:ure)?-?)?(\d+)(-\w+)?", name):
            yield ("Figure" if match[1] else "Table", int(match[2]))
    yield from (("Figure", int(number)) for number in document.pictures)


def named(text):
    return {(kind, int(number)) for kind, number in re.findall(r"(Table|Figure) (\d+)", text)}


def covered(document):
    places = [claim.section for claim in load_claims().get(document.paper, [])]
    places += [entry.place for entry in document.unchecked]
    return set(of_layouts(document)).union(*map(named, places))


def missing(document):
    counts = NUMBERED[document.paper]
    wanted = {(kind, n) for kind, count in counts.items() for n in range(1, count + 1)}
    return wanted - covered(document)


@pytest.mark.parametrize("paper", list(DOCUMENTS))
def test_every_table_and_figure_is_covered(paper):
    assert not missing(DOCUMENTS[paper])


@pytest.mark.parametrize(
    ("paper", "changed", "gap"),
    [
        ("dp-ebm-2021", {"unchecked": []}, ("Figure", 2)),
        ("dp-llm-2020", {"unchecked": []}, ("Figure", 9)),
        ("dp-llm-2020", {"pictures": {}}, ("Figure", 3)),
        ("lazybb-2022", {"tables": {}}, ("Table", 2)),
        ("replication-report-2025", {"tables": {}}, ("Table", 3)),
    ],
)
def test_what_is_taken_away_is_missed(paper, changed, gap):
    assert gap in missing(DOCUMENTS[paper].model_copy(update=changed))


def test_what_is_not_checked_has_a_place_and_a_reason():
    entries = [entry for document in DOCUMENTS.values() for entry in document.unchecked]
    assert len(entries) > 15
    for entry in entries:
        assert entry.states.endswith("."), entry
        assert entry.reason.endswith("."), entry
        assert entry.place.split()[0] in {
            "section",
            "Table",
            "Figure",
            "Theorem",
            "slide",
            "slides",
        }


def test_notes_tell_what_is_not_checked():
    entry = Unchecked(place="Figure 2", states="A sketch.", reason="there are no data.")
    document = DOCUMENTS["dp-ebm-2021"].model_copy(update={"unchecked": [entry]})
    told = "dp-ebm-2021, Figure 2: A sketch. Not checked: there are no data."
    assert document.notes[-1] == told


@pytest.mark.skipif(not PAPERS, reason="$DPREPRO_PAPERS names no folder with the documents' texts")
@pytest.mark.parametrize("paper", sorted(set(DOCUMENTS) - WITHOUT_TEXT))
def test_the_texts_number_no_other_tables_and_figures(paper):
    text = (Path(str(PAPERS)) / f"{paper}.txt").read_text(encoding="utf-8")
    text, _, supplement = text.partition("\nReferences\n")
    found = {
        ("Table" if kind == "Table" else "Figure", int(number))
        for kind, number in re.findall(r"(Table|Fig\.|Figure)s? (\d+)\b", text + supplement)
    }
    counts = NUMBERED[paper]
    wanted = {(kind, n) for kind, count in counts.items() for n in range(1, count + 1)}
    assert found == wanted | OTHERS.get(paper, set())


# The figures of the others are pictures: their numbers come from the authors' records.
IN_TEXT = sorted(set(DOCUMENTS) - WITHOUT_TEXT - {"maddock-2022"})


@pytest.mark.skipif(not PAPERS, reason="$DPREPRO_PAPERS names no folder with the documents' texts")
@pytest.mark.parametrize("paper", IN_TEXT)
def test_every_number_stands_in_the_text_with_the_digits_that_are_stored(paper):
    text = (Path(str(PAPERS)) / f"{paper}.txt").read_text(encoding="utf-8")
    words = set(re.findall(r"\d+(?:\.\d+)?", text.replace("0.820.820.82", "0.82")))
    missing = []
    for cell in load_published(paper):
        numbers = [(cell.mean, cell.decimals)]
        numbers += [] if cell.std is None else [(cell.std, cell.std_decimals)]
        for value, digits in numbers:
            in_percent = f"{100 * value:.{max(digits - 2, 0)}f}"
            if not {f"{value:.{digits}f}", in_percent} & words:
                missing.append((str(cell), value, digits))
    assert not missing
