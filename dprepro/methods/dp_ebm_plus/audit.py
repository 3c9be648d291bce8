"""DP-EBM+: what the model shows of a canary, and what all the noisy answers show together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from dprepro.audit.case import AuditSetting, Case, MethodPair, Table, categories
from dprepro.audit.distinguishers import Ceiling
from dprepro.audit.likelihood_ratio import Answer, Evidence, Known, Unexplained, sigmoid
from dprepro.audit.pairs import KINDS, canary_pair
from dprepro.audit.side_channels import BITS, FILE, bits_of_counts, model_file
from dprepro.audit.transcript import (
    MISSING,
    RANGE,
    UPPER,
    WHOLE,
    WORDS,
    Event,
    ExactlyOverheard,
    Knows,
    Part,
    additive_pairs,
    transcript_case,
)
from dprepro.data.domain import CategoricalFeature, Domain
from dprepro.estimators.inputs import Rows
from dprepro.methods.dp_ebm_plus.curator import ExactAnswers, Sorting
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, SQUARED, Loss, Softmax
from dprepro.methods.dp_ebm_plus.queries import (
    ClassCounts,
    ClassResiduals,
    Code,
    CodedHistogram,
    CodedResiduals,
    Magnitudes,
    Merge,
    Move,
    Moves,
    Residuals,
    Start,
    Totals,
)
from dprepro.privacy.gdp import epsilon_of
from dprepro.privacy.query import Instruction, Query

ENTRIES: dict[type[Query], int] = {
    Totals: 0, ClassCounts: 0, CodedHistogram: 1,
    CodedResiduals: 2, ClassResiduals: 2, Residuals: 2, Magnitudes: 2,
}  # fmt: skip
"""The entry of the ledger that each query belongs to."""

_CATEGORIES = ("few", "many")
_CATEGORY = CategoricalFeature("a", _CATEGORIES)
# Labels are learnt from many rows. Targets are drawn towards the others' mean the more of these
# there are, but of very few rows a noisy number says less than its budget.
_ROWS = {"binary": 200, "multiclass": 200, "regression": 40}
_LABELS = {"binary": ("0", "1"), "multiclass": ("0", "1", "2")}
_LOSSES: dict[str, Loss | Softmax] = {
    "binary": LOGISTIC, "multiclass": Softmax(3), "regression": SQUARED,
}  # fmt: skip
_OTHERS = 10
"""One in so many rows of the other bin has the canary's label. The fewer have it, the larger is the
canary's residual: it has to reach the limit that follows from the canary's code."""
_CROWD = 2
"""So many times as many rows lie in the other bin. A row of the rarer bin has the longer code, by
which its residual is limited."""
_EPOCHS = 1
"""Parts add up to the same over any number of epochs and features. With few, more runs can be made.
"METHOD/transcript" has several of both."""
_TRIALS = 30_000


def many_runs(setting: AuditSetting) -> Case:
    """Return the pair: rows (many) with one label; the canary among them has the other.

    It contradicts a bin full of equal rows. What the model shows of the canary is seen. The runs
    are those of `all_answers`.
    """
    case = all_answers(setting)
    return replace(
        case,
        subject=setting.method,
        neighbours=_words(_pair(setting)),
        runs=case.subject,
        columns=_MODEL,
        ceiling=None,
    )


def _pair(setting: AuditSetting) -> MethodPair:
    rows = math.ceil(_ROWS[setting.task] * max(1.0, 1 / setting.epsilon))
    domain = Domain((_CATEGORY,), _LABELS.get(setting.task, RANGE))
    present, absent = (_table(rows, setting.task, canary) for canary in (True, False))
    return MethodPair(setting, domain, present, absent, {"n_epochs": _EPOCHS})


def _words(pair: MethodPair) -> str:
    has_labels = pair.setting.task != "regression"
    rows = (pair.absent[0][_CATEGORY.name] == _CATEGORIES[1]).sum()
    return (
        f"{rows} rows with one {'label' if has_labels else 'target, the lower bound'}, and one row "
        f"more with the {'other label' if has_labels else 'upper bound'} or none"
    )


def _table(rows: int, task: str, canary: bool) -> Table:
    codes = np.repeat([0, 1], [_CROWD * rows, rows + int(canary)])
    if task == "regression":
        y = np.repeat(RANGE, [_CROWD * rows + rows, int(canary)])
    else:
        # All labels have to occur in either world.
        y = np.ones(_CROWD * rows + rows + int(canary))
        y[: _CROWD * rows : _OTHERS] = y[_CROWD * rows + rows :] = 0
        if task == "multiclass":
            y[1 : _CROWD * rows : _OTHERS] = 2
    return pd.DataFrame({_CATEGORY.name: categories(codes, _CATEGORIES)}), y


def _released(model: Any) -> np.ndarray:
    """Return what the canary has moved: the score of its bins, their counts, the intercept."""
    # Of several classes those of the canary's.
    level = np.ravel(model.intercept_)[0]
    score = level + sum(np.ravel(shape[-1])[0] for shape in model.shape_functions_)
    return np.array([score, level, *(count[-1] for count in model.bin_counts_)])


# --- all answers, with exact ones as the curator has them -----------------------------------------

_ANSWERS, _MODEL = (0, 1), (2, 3, 4)
"""Which of the numbers that `_seen` returns are of the answers, and which of the model."""
_FEW_TRIALS = 500


def all_answers(setting: AuditSetting) -> Case:
    """Return the pair, of which every noisy answer is seen: all that is released.

    The adversary knows all rows but the canary, and that it is like the last of them but for its
    target. Given what was released before, it knows of each answer what it is without the canary
    and what the canary would add. What is observed is by how much all answers are likelier with
    the canary, under the noise that the ledger states. With parts of norm m in units of that noise,
    the logarithm is N(-m^2/2, m^2) without the canary and N(m^2/2, m^2) with it: m-GDP.

    Apart from that it is observed in how many numbers there would be no noise. Counts are whole, so
    that their noise is 0 now and then: one sum of both would drown the evidence in such chances.
    """
    pair = _pair(setting)
    case = overheard(pair, "answers", _words(pair), _TRIALS)
    return replace(case, observe=_seen, columns=_ANSWERS)


def _seen(outcome: Any) -> np.ndarray:
    return np.concatenate([_evidence(outcome), _released(outcome.model)])


def overheard(pair: MethodPair, name: str, neighbours: str, trials: int) -> Case:
    """Return the case of any pair of DP-EBM+ by all its answers: the canary is the last row."""
    setting = pair.setting
    return Case(
        subject=f"{setting.method}/{name}",
        task=setting.task,
        neighbours=f"{neighbours}; all answers seen",
        fit=ExactlyOverheard(pair, _knows, _entry_of),
        observe=_evidence,
        trials=trials,
        ceiling=_of_all_parts,
    )


def _of_all_parts(outcome: Any) -> Ceiling:
    """All answers are Gaussian, moved by the canary's parts and by nothing else."""
    mu = math.sqrt(outcome.mu_squared)
    return Ceiling(epsilon_of(mu, outcome.ledger_.delta), "by the canary's part of every answer")


def _evidence(outcome: Any) -> np.ndarray:
    return np.array([outcome.evidence, outcome.bare])


def _knows(pair: MethodPair, rows: Table) -> Callable[[], Knows]:
    sorting = Sorting(pair.domain, _LOSSES[pair.setting.task])
    return partial(ExactAnswers.over, sorting(Rows(*rows)), sorting)


def _entry_of(query: Query) -> int:
    return ENTRIES[type(query)]


def canary(setting: AuditSetting, name: str) -> Case:
    """Return a kind of canary, seen by all noisy answers."""
    pair, words = canary_pair(setting, name, {"n_epochs": 2})
    return overheard(pair, name, words, _FEW_TRIALS)


# --- all answers, with exact ones by the adversary ------------------------------------------------

TOTALS, HISTOGRAMS, EPOCHS = _NAMES = ("totals", "histograms", "epochs")

_TOLD_EPOCHS = 4


def transcript(setting: AuditSetting, entry: int | None = None) -> Case:
    """Return all answers, or those of one phase."""
    pairs = additive_pairs(setting, {"n_epochs": _TOLD_EPOCHS}, _weigh, (UPPER, MISSING))
    # Of labels an epoch asks once; of targets for sizes, the intercept, and all features.
    epochs = _TOLD_EPOCHS * (3 if setting.task == "regression" else 1)
    parts = (
        Part(TOTALS, 1), Part(HISTOGRAMS, 2), Part(EPOCHS, epochs),
    )  # fmt: skip
    return transcript_case(setting, pairs, WORDS, 5 + epochs, parts, entry)


def _weigh(
    model: Any, events: list[Event], *, known: Known, is_logistic: bool
) -> Sequence[Evidence]:
    multipliers = [entry.noise_multiplier for entry in model.ledger_.entries]
    adversary = Adversary(known, is_logistic, multipliers)
    return adversary.answers(events, model.bin_counts_)


def low_bits(setting: AuditSetting) -> Case:
    """Return the low bits of the number of rows, and of the counts of the first feature."""
    return bits_of_counts(transcript(setting), _count)


def _count(query: Query, known: Known) -> tuple[int, float] | None:
    if isinstance(query, Totals):
        return 0, float(known.counts.sum())
    is_first = isinstance(query, CodedHistogram) and query.code.feature == 0
    return known.alone if is_first else None


def written(setting: AuditSetting) -> Case:
    """Return the bytes of the model file."""
    return model_file(transcript(setting))


# --- adversary: the one-page description, each answer without the canary --------------------------

# The sensitivities by which the stated noise is scaled are worked out here, not taken from a query.

_GRID = 2.0**-24
"""What scores and their changes count in."""
_CENTRE = 2.0**-8
"""What the centres and mixes of codes count in."""


@dataclass
class Adversary:
    """Follows one fit from its first answer to its last.

    Attributes
    ----------
    known
        The rows. A number lies in cell 0 (lower bound), -2 (upper bound) or -1 (missing): the grid
        between is not needed.
    is_logistic
        For labels; else for targets.
    multipliers
        Noise over sensitivity of totals, histograms and epochs, by the ledger.
    """

    known: Known
    is_logistic: bool
    multipliers: Sequence[float]
    _cells: dict[int, np.ndarray] = field(default_factory=dict)
    _bins: dict[int, np.ndarray] = field(default_factory=dict)
    _sizes: dict[int, int] = field(default_factory=dict)
    _scores: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def answers(self, events: Sequence[Event], bin_counts: Sequence[np.ndarray]) -> list[Evidence]:
        """Return all answers, in order, and what the model says beside them.

        `bin_counts` are the noisy rows per bin of each feature, as the model has them.
        """
        rows = len(self.known.counts) + 1
        self._bins, self._sizes = {-1: np.zeros(rows, np.int64)}, {-1: 1}
        self._scores = np.zeros(rows)
        found: list[Evidence] = []
        for event in events:
            if isinstance(event, Instruction):
                self._follow(event)
                continue
            query, answer = event
            # One column a group, the canary's last: each is what its rows add.
            parts, sensitivity = self._parts(query, answer.value.size)
            entry = ENTRIES[type(query)]
            deviation = self.multipliers[entry] * sensitivity / math.sqrt(query.share)
            noise = (answer.value.ravel() - parts[:, :-1] @ self.known.counts) / deviation
            found.append(Answer(_NAMES[entry], noise, parts[:, -1] / deviation))
        return found + [self._share(k, counts) for k, counts in enumerate(bin_counts)]

    def _share(self, k: int, counts: np.ndarray) -> Evidence:
        """Return the share of the canary's bin among all, less that among the known rows."""
        bins = self._bins[k]
        known = self.known.counts[bins[:-1] == bins[-1]].sum() / self.known.counts.sum()
        return Unexplained(float(counts[bins[-1]] / np.sum(counts) - known))

    def _follow(self, instruction: Instruction) -> None:
        match instruction:
            case Merge(feature=k, bin_of_cell=bin_of_cell, n_bins=n_bins):
                self._bins[k] = bin_of_cell[self._cells[k]].astype(np.int64)
                self._sizes[k] = n_bins
            case Start(score=score):
                rows = len(self._bins[-1])
                self._scores = np.zeros((rows, *np.shape(score))) + score * _GRID
            case Move(feature=int(k), change=change):
                self._scores += change[self._bins[k]] * _GRID
            case Moves(moves=moves):
                for each in moves:
                    self._follow(each)

    def _parts(self, query: Query, size: int) -> tuple[np.ndarray, float]:
        """Return what a row of each group adds, (size, groups + 1), and the sensitivity."""
        targets = np.append(self.known.targets, self.known.target)
        if isinstance(query, Totals):
            centred = targets - 0.5 if self.is_logistic else targets
            parts = np.array([np.ones(centred.size), centred, 4 * centred**2][:size])
            return parts, math.sqrt(sum([1, 1 / 4, 1][:size]))
        if isinstance(query, ClassCounts):
            return _one_hot(targets.astype(int), size), 1.0
        if isinstance(query, CodedHistogram):
            return self._histogram(query.code)
        if isinstance(query, ClassResiduals):
            return self._of_classes(query, targets.astype(int)), float(query.bound)
        guesses = sigmoid(self._scores) if self.is_logistic else np.clip(self._scores, -0.5, 0.5)
        residuals = targets - guesses
        if isinstance(query, Magnitudes):
            octaves = np.floor(-2 * np.log2(np.maximum(np.abs(residuals), 1e-300)))
            return _one_hot(np.clip(octaves, 0, size - 1).astype(int), size), 1.0
        assert isinstance(query, CodedResiduals | Residuals)
        bound = float(query.bound)
        if isinstance(query, CodedResiduals):
            codes = np.concatenate([self._code(each) for each in query.codes])
            with np.errstate(divide="ignore"):  # a row whose code is 0 adds 0
                limits = np.minimum(bound / np.linalg.norm(codes, axis=0), 1.0)
            return codes * np.clip(residuals, -limits, limits), bound
        k = query.feature
        return _one_hot(self._bins[k], self._sizes[k]) * np.clip(residuals, -bound, bound), bound

    def _of_classes(self, query: ClassResiduals, targets: np.ndarray) -> np.ndarray:
        """Return code times residual vector of each row, shortened, float64 (C S, rows)."""
        chances = np.exp(self._scores - self._scores.max(axis=1, keepdims=True))
        residuals = np.eye(chances.shape[1])[targets] - chances / chances.sum(axis=1, keepdims=True)
        codes = np.concatenate([self._code(each) for each in query.codes])
        with np.errstate(divide="ignore", invalid="ignore"):  # a row whose code is 0 adds 0
            longest = float(query.bound) / np.linalg.norm(codes, axis=0)
            part = np.fmin(longest / np.linalg.norm(residuals, axis=1), 1.0)
        vectors = residuals.T * part
        return np.asarray((codes[:, None] * vectors[None]).reshape(-1, targets.size))

    def _code(self, code: Code) -> np.ndarray:
        """Return a feature's part of the rows' codes."""
        k = code.feature
        assert isinstance(k, int), "the fits of the audit have no pairs"
        return _coded(code, _one_hot(self._bins[k], self._sizes[k]))

    def _histogram(self, code: Code) -> tuple[np.ndarray, float]:
        """Return the codes of the rows' cells, and the length of the longest code of a cell."""
        k = code.feature
        assert isinstance(k, int), "a histogram is of a feature"
        cells = np.append(self.known.cells[:, k], self.known.canary[k])
        cells = np.where(cells < 0, code.n_bins + cells, cells)
        self._cells[k] = cells
        longest = np.linalg.norm(_coded(code, np.eye(code.n_bins)), axis=0).max()
        return _coded(code, _one_hot(cells, code.n_bins)), float(longest)


def _coded(code: Code, places: np.ndarray) -> np.ndarray:
    """Return w_c (M_cb - p_c) of rows in the places b, float64 (C, n); M is I without a mix."""
    if code.mix is not None:
        places = code.mix.astype(np.float64) * _CENTRE @ places
    return np.asarray(code.weights[:, None] * (places - code.centre[:, None] * _CENTRE))


def _one_hot(places: np.ndarray, size: int) -> np.ndarray:
    return (np.arange(size)[:, None] == places).astype(np.float64)


CASES = {
    f"dp-ebm-plus/{BITS}": low_bits,
    f"dp-ebm-plus/{FILE}": written,
    **{f"dp-ebm-plus/{name}": partial(canary, name=name) for name in KINDS},
    "dp-ebm-plus": many_runs,
    "dp-ebm-plus/answers": all_answers,
    f"dp-ebm-plus/{WHOLE}": transcript,
    f"dp-ebm-plus/{TOTALS}": partial(transcript, entry=0),
    f"dp-ebm-plus/{HISTOGRAMS}": partial(transcript, entry=1),
    f"dp-ebm-plus/{EPOCHS}": partial(transcript, entry=2),
}
