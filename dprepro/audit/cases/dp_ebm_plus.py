"""DP-EBM+: what the model shows of a canary, and what all the noisy answers show together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

from dprepro.audit.case import AuditSetting, Case, MethodPair, Table, categories
from dprepro.data.domain import CategoricalFeature, Domain, Feature, NumericFeature
from dprepro.ebm_plus import booster as batch_boosting
from dprepro.ebm_plus import estimator as dp_ebm_plus
from dprepro.ebm_plus.booster import BatchBooster, Function, answer_sensitivity
from dprepro.ebm_plus.clipping import MAGNITUDES, likely_sizes
from dprepro.ebm_plus.grid import cell_extents
from dprepro.ebm_plus.groups import exact_answers
from dprepro.ebm_plus.kernel import magnitude_counts, residual_sums
from dprepro.privacy.ledger import Ledger

_CATEGORIES = ("few", "many")
_CATEGORY, _OTHER = (CategoricalFeature(name, _CATEGORIES) for name in "ab")
_NUMBER = NumericFeature("b", 0.0, 1000.0)
"""Few rows hold the lower bound, many the upper one."""

_RANGE = (100.0, 101.0)
_TRIALS = 8000


def many_runs(setting: AuditSetting) -> Case:
    """Return the pair: rows (many, many) with one label; the canary among them has the other.

    It contradicts a bin full of equal rows, in every feature at every epoch.
    """
    pair = _pair(setting, 1000, (_CATEGORY, _OTHER))
    return Case(
        subject=setting.method,
        task=setting.task,
        neighbours=_words(pair),
        fit=pair.fit,
        observe=_released,
        trials=_TRIALS,
    )


def _pair(setting: AuditSetting, rows: int, features: tuple[Feature, ...]) -> MethodPair:
    rows = math.ceil(rows * max(1.0, 1 / setting.epsilon))
    domain = Domain(features, ("0", "1") if setting.task == "binary" else _RANGE)
    present, absent = (_table(rows, setting.task, domain, canary) for canary in (True, False))
    return MethodPair(setting, domain, present=present, absent=absent)


def _words(pair: MethodPair) -> str:
    binary = pair.setting.task == "binary"
    rows = (pair.absent[0][_CATEGORY.name] == _CATEGORIES[1]).sum()
    return (
        f"{rows} rows with one {'label' if binary else 'target, the lower bound'}, and one row "
        f"more with the {'other label' if binary else 'upper bound'} or none"
    )


def _table(rows: int, task: str, domain: Domain, canary: bool) -> Table:
    codes = np.repeat([0, 1], [rows // 2, rows + int(canary)])
    if task == "binary":
        # Both labels have to occur in either world.
        y = np.concatenate([np.arange(rows // 2) % 2, np.ones(rows), np.zeros(int(canary))])
    else:
        y = np.repeat(_RANGE, [rows // 2 + rows, int(canary)])
    columns = {
        feature.name: np.array([feature.lower, feature.upper])[codes]
        if isinstance(feature, NumericFeature)
        else categories(codes, _CATEGORIES)
        for feature in domain.features
    }
    return pd.DataFrame(columns), y


def _released(model: Any) -> np.ndarray:
    """Return what the canary has moved: the score of its bins, their counts, the intercept."""
    score = model.intercept_ + sum(shape[-1] for shape in model.shape_functions_)
    return np.array([score, model.intercept_, *(count[-1] for count in model.bin_counts_)])


# --- all answers ----------------------------------------------------------------------------------

_FEW_ROWS = 200
_EPOCHS = 4
"""Parts add up to the same over any number of epochs, and few make for many runs."""

_ANSWER_TRIALS = 24_000
_MISSING = 1e-5
"""How likely the adversary holds it that noise is missing, and the deviation that is left then, in
units of what is stated: so little that nothing changes where the noise is there."""


def all_answers(setting: AuditSetting) -> Case:
    """Return such a pair with a number, of which every noisy answer is seen: all that is released.

    The adversary knows all rows but the canary, and that it is like the last of them but for its
    target. Given what was released before, it knows of each answer what it is without the canary
    and what the canary would add. What is observed is by how much all answers are likelier with
    the canary, under the noise that the ledger states. With parts of norm m in units of that noise,
    the logarithm is N(-m^2/2, m^2) without the canary and N(m^2/2, m^2) with it: m-GDP.
    """
    pair = _Overheard(
        **vars(_pair(setting, _FEW_ROWS, (_CATEGORY, _NUMBER))) | {"params": {"n_epochs": _EPOCHS}}
    )
    return Case(
        subject=f"{setting.method}/answers",
        task=setting.task,
        neighbours=f"{_words(pair)}; all answers seen",
        fit=pair.fit,
        observe=_evidence,
        trials=_ANSWER_TRIALS,
    )


def _evidence(outcome: Any) -> np.ndarray:
    return np.array([outcome.evidence])


class _Overheard(MethodPair):
    """The pair, whose outcome is what an adversary makes of all answers."""

    def fit(self, present: bool, seed: int | None) -> Any:
        """Return ``ledger_``, and what `_Adversary` has found: ``evidence`` and ``mu_squared``."""
        canary = 0.5 if self.setting.task == "regression" else 0.0
        adversary = _Adversary(len(self.absent[1]), canary)
        with adversary.listening():
            model = super().fit(present, seed)
        return SimpleNamespace(
            ledger_=model.ledger_, evidence=adversary.evidence, mu_squared=adversary.mu_squared
        )


class _Adversary:
    """Hears every noisy answer of a fit and adds up what they say of the canary.

    Attributes
    ----------
    others, canary
        How many rows there are without the canary; its target in the unit that is learned in.
    evidence, mu_squared
        Log likelihood ratio so far; squared norm of the canary's parts in units of the noise.
    """

    def __init__(self, others: int, canary: float) -> None:
        self.others = slice(others)
        # The last of the others has its features, and so its bins and its score.
        self.twin = slice(others - 1, others)
        self.canary = np.array([canary], np.float32)
        self.evidence = self.mu_squared = 0.0
        self.ledger: Ledger

    def hear(self, noisy: Any, without: np.ndarray, part: np.ndarray, deviation: float) -> None:
        """Take in an answer, what it is without the canary, and what the canary would add to it."""
        absent = (noisy - without) / deviation
        present = (noisy - without - part) / deviation
        self.evidence += float(np.sum(_log_density(present) - _log_density(absent)))
        self.mu_squared += float(np.sum((part / deviation) ** 2))

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Hear the fits of DP-EBM+ in this process meanwhile, and change nothing in them."""
        model = dp_ebm_plus._DPEBMPlus
        totals, histograms = model._release_totals, model._release_histograms
        with ExitStack() as stack:
            for patched in (
                patch.object(model, "_release_totals", _hearing_totals(totals, self)),
                patch.object(model, "_release_histograms", _hearing_histograms(histograms, self)),
                patch.object(dp_ebm_plus, "BatchBooster", partial(_HeardBooster, self)),
            ):
                stack.enter_context(patched)
            yield


def _log_density(deviations: np.ndarray) -> np.ndarray:
    """Return the log density of standard normal noise that may be missing, up to a constant."""
    missing = -((deviations / _MISSING) ** 2) / 2
    return np.asarray(np.logaddexp(-(deviations**2) / 2, missing))


def _hearing_totals(release: Callable[..., Any], adversary: _Adversary) -> Callable[..., Any]:
    def heard(model: Any, source: Any, targets: np.ndarray, logistic: bool) -> Any:
        drawn, draw = [], source.gaussian

        def gaussian(*args: Any, **parameters: Any) -> np.ndarray:
            drawn.append(draw(*args, **parameters))
            return np.asarray(drawn[-1])

        with patch.object(source, "gaussian", gaussian):
            rows, *others = release(model, source, targets, logistic)
        (noise,) = drawn
        exact, without, part = (
            # Of labels no squares are asked.
            np.power.outer(t - 0.5 * logistic, np.arange(noise.size)).sum(axis=0)
            for t in (targets, targets[adversary.others], adversary.canary)
        )
        # The sums go on changed, but the number of rows as it is.
        noisy = np.append(rows, (exact + noise)[1:])
        adversary.ledger = source.ledger
        adversary.hear(noisy, without, part, source.ledger.entries[-1].scale)
        return rows, *others

    return heard


def _hearing_histograms(release: Callable[..., Any], adversary: _Adversary) -> Callable[..., Any]:
    def heard(model: Any, source: Any, frame: pd.DataFrame, domain: Domain, share: float) -> Any:
        cells, noisy, deviation = release(model, source, frame, domain, share)
        for feature, rows, answers in zip(domain.features, cells, noisy, strict=True):
            without, part = (
                exact_answers(feature, np.bincount(rows[who], minlength=cell_extents(feature).size))
                for who in (adversary.others, adversary.twin)
            )
            adversary.hear(answers, without, part, source.ledger.entries[-1].scale)
        return cells, noisy, deviation

    return heard


class _HeardBooster(BatchBooster):
    """Lets an adversary hear the answers of all epochs."""

    def __init__(self, adversary: _Adversary, *args: Any, **parameters: Any) -> None:
        super().__init__(*args, **parameters)
        self._adversary = adversary

    def _set_bound(self, noise: np.ndarray) -> None:
        without, part = self._known(magnitude_counts, MAGNITUDES)
        deviation = self._stated(self.shares[2])

        def heard(noisy: np.ndarray, *others: Any) -> Any:
            self._adversary.hear(noisy, without, part, deviation)
            return likely_sizes(noisy, *others)

        with patch.object(batch_boosting, "likely_sizes", heard):
            super()._set_bound(noise)

    def _sums(self, function: Function, bound: float) -> np.ndarray:
        self._sensitivity = answer_sensitivity(bound, logistic=self.logistic)
        asked = (function.counts.size, np.float32(bound), self.logistic)
        self._parts = self._known(residual_sums, *asked, codes=function.codes)
        return super()._sums(function, bound)

    def _ask(self, function: Function, share: float, noise: np.ndarray) -> tuple[np.ndarray, float]:
        answer = super()._ask(function, share, noise)
        without, part = self._parts
        self._adversary.hear(answer[0], without, part, self._sensitivity * self._stated(share))
        return answer

    def _stated(self, share: float) -> float:
        """Return the deviation of noise by the ledger, of a query of sensitivity 1."""
        return self._adversary.ledger.entries[-1].scale / math.sqrt(share)

    def _known(self, kernel: Any, *asked: Any, codes: np.ndarray | None = None) -> Any:
        """Return the answer without the canary, and what the canary adds to it."""
        adversary = self._adversary
        targets = (self.targets[adversary.others], adversary.canary)
        return tuple(
            # A kernel applies the pending change in place.
            kernel(
                self._scores[who].copy(), t, self._pending[0][who], self._pending[1],
                *([] if codes is None else [codes[who]]), *asked,
            )
            for who, t in zip((adversary.others, adversary.twin), targets, strict=True)
        )  # fmt: skip


CASES = {"dp-ebm-plus": many_runs, "dp-ebm-plus/answers": all_answers}
