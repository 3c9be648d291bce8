"""No pair of neighbours that a search finds moves an exact answer by more than is charged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dprepro.methods.ada_ssp import curator as ada_ssp
from dprepro.methods.dp_ebm import curator as ebm
from dprepro.methods.dp_ebm_plus import curator as ebm_plus
from dprepro.methods.lazybb import calibration
from dprepro.methods.lazybb import queries as lazybb
from dprepro.methods.locally_linear import gradients
from dprepro.privacy.query import Query
from dprepro.privacy.sensitivity import Sensitivity
from tests.privacy import overheard
from tests.privacy.curators import FITS
from tests.privacy.search import ALL_USES, LEFT_OUT, SUBJECTS, Search, main

NOT_SEARCHED = {
    "Coefficients", "ColumnMeans", "SecondMoments", "MeanResiduals", "GradientQuery", "NodeSize",
}  # fmt: skip
"""Queries of fits that are left out; see `LEFT_OUT`."""

QUICK, LONG = 1, 60
"""Steps for each query and relation."""


@pytest.fixture(scope="module")
def searched() -> dict[str, Search]:
    return {name: Search(name).run(QUICK) for name in SUBJECTS}


def test_every_fit_is_searched_or_left_out_for_a_reason() -> None:
    assert {*FITS} == {*SUBJECTS} & {*FITS} | {*LEFT_OUT}
    assert not {*SUBJECTS} & {*LEFT_OUT}


def test_nothing_is_above_its_charge_but_where_a_gap_is_named(searched: dict[str, Search]) -> None:
    assert {name: above for name, each in searched.items() if (above := each.above())} == {}


def test_every_query_of_every_curator_is_heard(searched: dict[str, Search]) -> None:
    def derived(base: type) -> set[type]:
        return {base}.union(*map(derived, base.__subclasses__()))

    queries = {q for q in derived(Query) if q.__module__.startswith("dprepro.")}
    asked = {query for query in queries if not query.__subclasses__()}
    heard = set[type].union(*(each.heard for each in searched.values()))
    assert {query.__name__ for query in asked - heard} == NOT_SEARCHED


@pytest.mark.parametrize("name", SUBJECTS)
def test_nor_is_it_where_the_search_is_long(name: str) -> None:
    found = Search(name, seed=1).run(LONG)
    assert found.above() == set()
    # An exchange leaves the number of rows.
    assert all(each.ratio > 0.25 for (query, _), each in found.best.items() if query != "RowCount")


def test_a_gap_that_a_ledger_names_is_found_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """The published sensitivity of DP-EBM's regression is too small."""
    assert main(["--steps", "5", "--only", "dp-ebm, as published"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "LeafSums" in line]
    assert line.endswith("gap")
    assert float(line.split()[-3]) > 1.1


# --- charges that are too small -------------------------------------------------------------------


def smaller(module: Any, name: str, factor: float) -> Callable[[pytest.MonkeyPatch], None]:
    """Plant a function that returns so much of what it should."""
    right = getattr(module, name)
    return lambda patch: patch.setattr(module, name, lambda *given: right(*given) * factor)


def exchange(module: Any, name: str, moves: float) -> Callable[[pytest.MonkeyPatch], None]:
    """Plant another sensitivity under replace-one."""
    right = getattr(module, name)
    return lambda patch: patch.setattr(
        module, name, lambda *given: Sensitivity(right(*given).stated, moves)
    )


def halved_errors(patch: pytest.MonkeyPatch) -> None:
    for module in (lazybb, calibration):
        smaller(module, "error_sensitivity", 0.5)(patch)


def used_again(patch: pytest.MonkeyPatch) -> None:
    """Let rows that trained a tree train the next ones."""

    def take(subsets: Any, drawn: Any, fits: Any) -> Any:
        rows = subsets._unused[drawn]
        return rows[fits(rows)]

    patch.setattr(overheard, "_take", take)


def longer_gradients(patch: pytest.MonkeyPatch) -> None:
    """Clip gradients at more than is charged."""
    right = gradients.clipped_sum
    patch.setattr(gradients, "clipped_sum", lambda *given: right(*given[:-1], given[-1] * 1.1))


@pytest.mark.parametrize(
    ("name", "query", "exchanged", "plant"),
    [
        ("dp-ebm-plus, regression", "Totals", True, exchange(ebm_plus, "totals_sensitivity", 1.0)),
        ("dp-ebm, regression", "CellCounts", True, exchange(ebm, "histogram_sensitivity", 1.0)),
        ("ada-ssp", "Moments", False, smaller(ada_ssp, "moments_sensitivity", 0.9)),
        ("lazybb, 1-Rules", "RuleQuery", True, halved_errors),
        ("dpboost, sound", ALL_USES, False, used_again),
        ("dp-llm", "GradientQuery", False, longer_gradients),
    ],
)
def test_a_charge_that_is_too_small_is_found(
    name: str, query: str, exchanged: bool, plant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    found = Search(name).run(40, query)
    assert found.best[query, exchanged].ratio > 1.04
    assert query in found.above()
