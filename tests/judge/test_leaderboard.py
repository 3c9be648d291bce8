"""The computation of the leaderboard, against SciPy and by hand, and the configs of the board."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from scipy import stats

from dprepro.data.card import load_card
from dprepro.experiment.config import load_config, load_experiments
from dprepro.experiment.record import Record
from dprepro.judge.leaderboard import (
    ALL_KINDS,
    CONSTANT,
    RESAMPLES,
    audit_of,
    boards,
)
from dprepro.methods import registry
from dprepro.methods.entry import Guarantee
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.sensitivity import ADD_REMOVE
from dprepro.results.audits import Audit
from dprepro.results.folder import read_results
from dprepro.runtime.errors import DpreproError
from tests.privacy.entries import gaussian
from tests.report.journals import records, task, write

LABELS = ("a", "b", "c", "d")
LEVELS = (0.5, 3.0)
TABLES = ("t1", "t2", "t3", "t4", "t5", "t6")
SOUND = Ledger(
    1.0, 1e-6, ADD_REMOVE, [gaussian(12.0)], unaccounted=["fixed seed: repeatable"]
).summary()
NAN = math.nan


def lines_of(table, means, metric="auc", ledgers=None, splits=3, spread=0.01):
    """Return records with these means, (labels, levels), and those of the references."""
    shifts = spread * (np.arange(splits) - (splits - 1) / 2)
    found = []
    for label, row in zip(LABELS, means, strict=False):
        for epsilon, mean in zip(LEVELS, row, strict=True):
            if not math.isnan(mean):
                ledger = {**SOUND, "epsilon": epsilon, **(ledgers or {}).get(label, {})}
                found += records(list(mean + shifts), label, epsilon, metric, ledger, dataset=table)
    ends = {"auc": (0.5, 0.9), "accuracy": (0.3, 0.9), "rmse": (5.0, 2.0)}[metric]
    for label, mean in zip(
        (CONSTANT, "ebm", "worse"), (*ends, statistics.fmean(ends)), strict=True
    ):
        found += records(list(mean + shifts), label, math.inf, metric, dataset=table)
    return found


def made(folder, lines, **options):
    write(folder, "board-x", lines)
    facts = options.pop("registry", {})
    return boards(read_results(folder), facts, options.pop("audits", []), **options)


def means_of(seed, rounded=False):
    found = 0.5 + 0.5 * np.random.default_rng(seed).random((len(TABLES), len(LABELS), len(LEVELS)))
    found -= 0.1
    return np.round(found, 1) if rounded else found


@pytest.mark.parametrize("rounded", [False, True], ids=["distinct", "ties"])
def test_ranks_wins_and_scores_are_those_of_scipy(tmp_path, rounded):
    means = means_of(1, rounded)
    lines = [
        r for t, table in zip(TABLES, means, strict=True) for r in lines_of(t, table, spread=0)
    ]
    (board,) = made(tmp_path, lines)
    ranks = stats.rankdata(-means, axis=1).mean(axis=(0, 2))
    best = means == means.max(axis=1, keepdims=True)
    wins = (best / best.sum(axis=1, keepdims=True)).mean(axis=(0, 2))
    scores = np.clip((means - 0.5) / 0.4, 0, None)
    assert board.kind == "binary"
    assert len(board.cells) == len(TABLES) * len(LEVELS)
    for standing in board.standings:
        k = LABELS.index(standing.label)
        assert standing.mean_rank == pytest.approx(ranks[k])
        assert standing.win_rate == pytest.approx(wins[k])
        assert standing.score == pytest.approx(scores[:, k].mean())
        assert standing.cells == len(board.cells)
    assert [s.mean_rank for s in board.standings] == sorted(s.mean_rank for s in board.standings)
    assert sum(s.win_rate for s in board.standings) == pytest.approx(1)
    assert board.references == ("ebm", "worse")


def test_the_interval_is_a_bootstrap_over_tables(tmp_path):
    means = means_of(2)
    lines = [r for t, table in zip(TABLES, means, strict=True) for r in lines_of(t, table)]
    (board,) = made(tmp_path, lines)
    scores = np.clip((means - 0.5) / 0.4, 0, None).mean(axis=2)
    for standing in board.standings:
        own = scores[:, LABELS.index(standing.label)]
        expected = stats.bootstrap(
            (own,), np.mean, n_resamples=RESAMPLES, method="percentile", rng=5
        ).confidence_interval
        assert (standing.low, standing.high) == pytest.approx(tuple(expected), abs=0.01)
        assert standing.low < standing.score < standing.high


def test_few_tables_have_no_interval(tmp_path):
    lines = [r for t, m in zip(TABLES[:4], means_of(3), strict=False) for r in lines_of(t, m)]
    (board,) = made(tmp_path, lines)
    assert {(s.low, s.high) for s in board.standings} == {(None, None)}


def test_errors_rank_the_other_way_round(tmp_path):
    (board,) = made(tmp_path, lines_of("t1", [[2.0, 2.5], [3.5, 3.5], [6.0, 7.0]], "rmse"))
    assert board.kind == "regression"
    assert [(s.label, s.mean_rank, s.score) for s in board.standings] == [
        ("a", 1, pytest.approx(11 / 12)), ("b", 2, pytest.approx(0.5)), ("c", 3, 0),
    ]  # fmt: skip


class TestMissingCells:
    MEANS = ((0.8, 0.8), (0.7, NAN), (0.6, 0.7), (0.55, 0.6))

    def test_a_method_that_was_not_run_is_last_there_with_the_score_of_a_constant(self, tmp_path):
        (board,) = made(tmp_path, lines_of("t1", self.MEANS))
        (b,) = [s for s in board.standings if s.label == "b"]
        assert (b.mean_rank, b.cells) == ((2 + 4) / 2, 1)
        assert b.score == pytest.approx((0.5 + 0) / 2)
        assert board.cells[1].missing == {"b": "not run"}
        assert board.cells[1].ranks == {"a": 1, "c": 2, "d": 3, "b": 4}

    def test_one_failed_split_makes_a_cell_missing(self, tmp_path):
        lines = lines_of("t1", [[0.8, 0.8], [0.9, 0.9], [0.6, 0.7]])
        lines = [r for r in lines if (r.task.label, r.task.split) != ("b", 1)]
        lines += [
            Record(task("b", epsilon, dataset="t1", split=1), "failed", message="no")
            for epsilon in LEVELS
        ]
        (board,) = made(tmp_path, lines)
        assert [cell.missing for cell in board.cells] == [{"b": "failed"}] * 2
        assert [s.label for s in board.standings] == ["a", "c", "b"]

    def test_those_that_are_missing_share_the_last_ranks(self, tmp_path):
        means = [*self.MEANS[:3], (0.5, NAN)]
        (board,) = made(tmp_path, lines_of("t1", [*means]) + lines_of("t2", [[0.8, 0.8]] * 4))
        cell = next(c for c in board.cells if c.table == "t1" and c.epsilon == 0.5)
        assert cell.ranks == {"a": 1, "b": 2, "c": 3, "d": 4}
        # At 3 two of four have results, which is not more than half.
        assert [(c.table, c.epsilon) for c in board.cells] == [
            ("t1", 0.5), ("t2", 0.5), ("t2", 3.0)
        ]  # fmt: skip
        assert board.left_out[0].startswith("t1 at epsilon 3: half of the methods or more")

    def test_means_are_over_the_splits_that_all_have_finished(self, tmp_path):
        lines = lines_of("t1", [[0.8, 0.8], [0.7, 0.7], [0.6, 0.6]], spread=0.2)
        lines = [r for r in lines if r.task.label != "b" or r.task.split < 2]
        (board,) = made(tmp_path, lines)
        assert {cell.splits for cell in board.cells} == {(0, 1)}
        assert board.cells[0].means == pytest.approx({"a": 0.7, "b": 0.6, "c": 0.5})
        assert board.cells[0].scores["a"] == pytest.approx((0.7 - 0.4) / (0.8 - 0.4))

    @pytest.mark.parametrize(
        ("change", "reason"),
        [({"seed": 2}, "other splits"), ({"delta": 1e-3}, "larger delta")],
    )
    def test_other_splits_and_a_larger_delta_do_not_count(self, tmp_path, change, reason):
        lines = lines_of("t1", [[0.8, 0.8], [NAN, NAN], [0.6, 0.7], [0.6, 0.7]])
        for epsilon in LEVELS:
            lines += records([0.9] * 3, "b", epsilon, ledger=SOUND, dataset="t1", **change)
        (board,) = made(tmp_path, lines)
        assert [cell.missing for cell in board.cells] == [{"b": reason}] * 2
        assert board.delta == 1e-6

    def test_a_smaller_delta_counts(self, tmp_path):
        lines = lines_of("t1", [[0.8, 0.8], [NAN, NAN], [0.6, 0.7]])
        for epsilon in LEVELS:
            lines += records([0.9] * 3, "b", epsilon, ledger=SOUND, dataset="t1", delta=0.0)
        (board,) = made(tmp_path, lines)
        assert board.standings[0].label == "b"

    def test_a_method_without_any_result_is_named(self, tmp_path):
        lines = lines_of("t1", [[0.8, 0.8], [0.7, 0.7]])
        lines += [Record(task("c", 0.5, dataset="t1"), "failed", message="no")]
        (board,) = made(tmp_path, lines)
        assert [s.label for s in board.standings] == ["a", "b"]
        assert board.left_out == ("c: no result on any of the tables",)

    def test_without_a_constant_there_is_no_score(self, tmp_path):
        lines = [r for r in lines_of("t1", self.MEANS) if r.task.label != CONSTANT]
        (board,) = made(tmp_path, lines)
        assert {s.score for s in board.standings} == {None}
        assert board.left_out[0].startswith("the normalised score of t1: it needs")


def test_each_kind_has_a_board_and_all_kinds_have_one_of_those_that_take_them(tmp_path):
    lines = [
        *lines_of("t1", [[0.8, 0.8], [0.7, 0.7], [0.6, 0.6]]),
        *lines_of("t2", [[2.0, 2.5], [3.5, 3.5], [NAN, NAN], [2.2, 2.2]], "rmse"),
    ]
    found = {board.kind: [s.label for s in board.standings] for board in made(tmp_path, lines)}
    assert found == {
        "binary": ["a", "b", "c"], "regression": ["a", "d", "b"], ALL_KINDS: ["a", "b"],
    }  # fmt: skip
    only = made(tmp_path, lines, kind="regression", epsilons=[3.0])
    assert [(board.kind, len(board.cells)) for board in only] == [("regression", 1)]


LEDGERS = {
    "a": {"gaps": ["a hole"]}, "b": {"floating_point": ["a sum"]}, "c": {"true_epsilon": 9.0},
}  # fmt: skip
KNOWN = {
    "a": registry.get("privatree-sound"), "b": registry.get("dp-random-forest"),
    "d": registry.get("dp-ebm-plus"),
}  # fmt: skip


class TestFilters:
    def board(self, folder, *only):
        means = [[0.8, 0.8], [0.7, 0.7], [0.6, 0.6], [0.55, 0.55]]
        lines = lines_of("t1", means, ledgers=LEDGERS)
        audits = [audit("b", "within"), audit("d", "within"), audit("d", "EXCEEDED")]
        return made(folder, lines, only=only, registry=KNOWN, audits=audits)[0]

    def test_they_follow_from_ledgers_audits_and_the_registry(self, tmp_path):
        facts = {s.label: s.facts for s in self.board(tmp_path).standings}
        assert {n: f.sound for n, f in facts.items()} == {"a": 0, "b": 1, "c": 0, "d": 1}
        assert {n: f.exact for n, f in facts.items()} == {"a": 1, "b": 0, "c": 1, "d": 1}
        assert {n: f.audited for n, f in facts.items()} == {"a": 0, "b": 1, "c": 0, "d": 0}
        assert {n: f.form for n, f in facts.items()} == {
            "a": "tree", "b": "", "c": "", "d": "functions"
        }  # fmt: skip
        assert facts["a"].reasons == ("a hole",)
        assert facts["c"].reasons == ("overspent",)

    @pytest.mark.parametrize(
        ("name", "left"),
        [("sound", ["b", "d"]), ("exact", ["a", "c", "d"]), ("interpretable", ["a", "d"])],
    )
    def test_methods_are_ranked_without_the_others(self, tmp_path, name, left):
        board = self.board(tmp_path, name)
        assert [s.label for s in board.standings] == left
        assert [s.mean_rank for s in board.standings] == list(range(1, len(left) + 1))

    def test_what_leaves_one_method_is_refused(self, tmp_path):
        with pytest.raises(DpreproError, match=r"no board is left.*binary tables with a, b, c, d"):
            self.board(tmp_path, "audited")

    def test_a_method_that_promises_nothing_is_not_sound_whatever_its_ledger_says(self, tmp_path):
        lines = lines_of("t1", [[0.8, 0.8], [0.7, 0.7]])
        (board,) = made(tmp_path, lines, registry={"a": registry.get("dpboost")})
        assert registry.get("dpboost").guarantee is Guarantee.NONE
        assert [s.facts.reasons for s in board.standings] == [("promises nothing",), ()]


def audit(method, verdict, version=None, kind="binary"):
    values = {
        "subject": method, "task": kind, "neighbours": "", "adjacency": "", "epsilon": 1.0,
        "delta": 0.0, "ledger_epsilon": 1.0, "lower_bound": 0.5, "confidence": 0.95, "bound": "",
        "verdict": verdict, "method_version": version,
    }  # fmt: skip
    return Audit.model_validate(values)


@pytest.mark.parametrize(
    ("audits", "said"),
    [
        ([], "no"),
        ([audit("m", "within")], "within"),
        ([audit("m", "within"), audit("m/answers", "EXCEEDED")], "EXCEEDED"),
        ([audit("m", "too few runs"), audit("m", "within", 1)], "within"),
        ([audit("m", "within", 2)], "version 2"),
        ([audit("m", "within", kind="regression")], "no"),
        ([audit("other", "within")], "no"),
    ],
)
def test_audits_count_of_this_version_and_kind(audits, said):
    assert audit_of(task("m", method_version=1), "binary", audits) == said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"methods": ["e"]}, "no private method 'e' in the journals read"),
        ({"epsilons": [2.0]}, "no results at epsilon 2 in the journals read. They have: 0.5, 3"),
        ({"kind": "multiclass"}, "no board is left"),
        ({"methods": ["a"]}, "no board is left"),
    ],
)
def test_what_is_not_there_is_refused_with_what_there_is(tmp_path, options, message):
    with pytest.raises(DpreproError, match=message):
        made(tmp_path, lines_of("t1", [[0.8, 0.8], [0.7, 0.7]]), **options)


def test_the_registry_says_of_every_additive_model_that_it_is_functions():
    from dprepro.additive.model import AdditiveModel

    for method in registry.all_methods().values():
        kind = min(method.tasks)
        if method.requires is None and method.makes(AdditiveModel, kind, {}):
            assert method.form == "functions", method.name


BOARD = load_experiments("board")


def test_the_board_has_the_tables_that_it_promises():
    kinds = [load_card(config.card).task for config in BOARD]
    assert len(BOARD) >= 24
    assert len({config.dataset for config in BOARD}) == len(BOARD)
    assert min(kinds.count(kind) for kind in ("binary", "multiclass", "regression")) >= 5


@pytest.mark.parametrize("config", BOARD, ids=lambda config: config.name)
def test_every_config_keeps_the_rule_of_the_board(config):
    card = load_card(config.card)
    first = next(c for c in BOARD if load_card(c.card).task == card.task)
    assert config.name == f"board-{config.dataset}"
    assert config.epsilons == (0.1, 0.5, 1, 3, 8)
    assert config.methods == first.methods
    assert (config.splits, config.test_share, config.seed) == (10, 0.2, 1)
    assert config.domain == "public"
    assert config.delta <= 1 / (10 * card.expect.rows)
    assert config.tuned_on is None
    assert config.metric == {"binary": "auc", "multiclass": "accuracy"}.get(card.task, "rmse")
    for entry in config.methods:
        known = registry.get(entry.method)
        assert (entry.by_epsilon, entry.grid, entry.epsilons, entry.delta) == ({}, {}, None, None)
        assert entry.domain is None
        assert entry.splits is None
        assert card.task in known.tasks
        assert known.takes_epsilon is False or known.guarantee is not Guarantee.NONE
    assert CONSTANT in {entry.label for entry in config.methods}


def test_no_table_is_one_that_settings_of_dp_ebm_plus_were_chosen_on():
    chosen = {
        "phishing", "cod-rna", "mammography", "ai4i2020", "adbench-cover", "diabetes", "mushroom",
        "bike-sharing", "parkinson", "support2", "balanced-diabetes130us",
    }  # fmt: skip
    assert not chosen & {config.dataset for config in BOARD}
    assert load_config("board-adult").delta == 1e-7
