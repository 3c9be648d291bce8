"""Ways to fit DP-EBM+ that leave out or change one part each, under the names that programs take.

What is asked:
    each bin        no mix: each bin of a feature is asked about by itself
    each cell       no mix: each cell of a histogram is asked for by itself
    uncentred       codes are not counted from their mean over the rows
    histograms S    histograms get the share S of mu^2 (0.1)
What is believed before any answer:
    bare counts     histograms are what was released, and are not inferred
    coarse bins     bins of numbers need twice the count to be closed, or a 12th of the rows
    fine bins       bins of numbers need half the count to be closed, or a 48th of the rows
    no curves       functions are no curves of small second differences
    no long reach   functions are not alike over their whole range
    no short reach  functions are not alike over a fifth of their range alone
    sizes alike     all sizes of functions are as likely, where small ones are otherwise
    usual size U    all functions together are about U units large, and not 1
What is made of answers:
    clipped at C    labels: residuals are clipped at C in a row whose code is of typical length,
                    whatever the noise (between 1/2 and 1)
    even averages   all epochs count alike
    steep averages  late epochs count more, by the fourth power, whatever the noise
    no damping      functions go all of their way in every epoch
    no wait         numbers: functions move in the first epoch, too
    no middle       numbers: features are asked about from the intercept
    unclipped U     numbers: the intercept is clipped at U deviations of the residuals (3)
    E epochs        a parameter of the method (64)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from replacing import replaced

from dprepro.data.domain import Feature
from dprepro.methods.dp_ebm_plus import algorithm, bins, booster, losses
from dprepro.methods.dp_ebm_plus.booster import Booster, Damping
from dprepro.methods.dp_ebm_plus.prior import Priors, half_cauchy, independent
from dprepro.methods.dp_ebm_plus.strategy import Strategy
from dprepro.privacy.query import NoisyAnswer

of_bins, of_cells = Strategy.of, Strategy.of_cells


def each_bin(
    _: type, feature: Any, counts: np.ndarray, precision: Any, noise: float, part: float
) -> Strategy:
    return of_bins(feature, counts, independent(counts.size), noise, part)


def each_cell(_: type, feature: int, precision: Any, noise: float) -> Strategy:
    return of_cells(feature, independent(precision[0].size), noise)


def uncentred(_: type, *given: Any) -> Strategy:
    strategy = of_bins(*given)
    code = strategy.code
    return replace(strategy, code=replace(code, centre=np.zeros_like(code.centre)))


def bare_counts(
    feature: Feature, strategy: Strategy, answer: NoisyAnswer, rows: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return what `bins.likely_counts` does, as if counts were nothing but what was released."""
    counts = strategy.mix.sums(answer.value / strategy.code.weights)
    variances = (strategy.noise(answer.scale) ** 2).sum(axis=0)
    if not feature.missing:
        counts[-1] = variances[-1] = 0.0
    return counts, variances


def without_kind(kind: int) -> list[Any]:
    """Return replacements: functions of numbers have all kinds of priors but one."""

    def of(precisions: Sequence[tuple[np.ndarray, ...]], sizes: np.ndarray) -> Priors:
        kept = [each for k, each in enumerate(precisions) if k != kind]
        return Priors.of(kept if len(precisions) > 1 else precisions, sizes)

    return [replaced(booster, "Priors", SimpleNamespace(of=of))]


class Undamped(Damping):
    """Lets functions go all of their way."""

    def __init__(self, n_functions: int) -> None:
        super().__init__(n_functions)
        self.value = 1.0

    def follow(self, answers: list[Any]) -> None:
        """Stay."""


def settle_as_one(learner: Booster) -> None:
    """Let both levels be what the queries for the intercept say."""
    told = learner.level.answers
    precision = told.deviation**-2
    level = precision * told.mean / (precision + learner.loss.prior**-2)
    learner._levels = level, level


def bins_from(seen: float, coarsest: float) -> list[Any]:
    return [replaced(bins, "_SEEN", seen), replaced(bins, "_COARSEST", coarsest)]


def averages(power: float) -> list[Any]:
    return [replaced(booster, "_RISING", power), replaced(booster, "_STEEPLY", 0.0)]


NAMED: dict[str, Callable[[], list[Any]]] = {
    "as it is": list,
    "each bin": lambda: [replaced(Strategy, "of", classmethod(each_bin))],
    "each cell": lambda: [replaced(Strategy, "of_cells", classmethod(each_cell))],
    "uncentred": lambda: [replaced(Strategy, "of", classmethod(uncentred))],
    "bare counts": lambda: [replaced(bins, "likely_counts", bare_counts)],
    "coarse bins": lambda: bins_from(2 * bins._SEEN, bins._COARSEST / 2),
    "fine bins": lambda: bins_from(bins._SEEN / 2, 2 * bins._COARSEST),
    "no curves": lambda: without_kind(2),
    "no long reach": lambda: without_kind(0),
    "no short reach": lambda: without_kind(1),
    "sizes alike": lambda: [
        replaced(booster, "half_cauchy", lambda sizes, _: np.full(sizes.size, 1 / sizes.size))
    ],
    "even averages": lambda: averages(0.0),
    "steep averages": lambda: averages(4.0),
    "no damping": lambda: [replaced(booster, "Damping", Undamped)],
    "no wait": lambda: [replaced(booster, "_SETTLING", 0)],
    "no middle": lambda: [replaced(Booster, "_settle", settle_as_one)],
}
NUMBERED: dict[str, Callable[[float], list[Any]]] = {
    "histograms S": lambda share: [replaced(algorithm, "HISTOGRAMS_SHARE", share)],
    "usual size U": lambda size: [
        replaced(booster, "half_cauchy", lambda sizes, scale: half_cauchy(sizes, size * scale))
    ],
    "clipped at C": lambda bound: [
        replaced(losses.LogisticLoss, "bound", lambda *_: float(losses.rounded(bound)))
    ],
    "unclipped U": lambda bound: [replaced(booster, "_UNCLIPPED", bound)],
}
"""Ways that end with a number: the last letter stands for it."""


@contextmanager
def taking(way: str) -> Iterator[None]:
    """Let DP-EBM+ take one of the ways, for as long as a block runs.

    Raises
    ------
    SystemExit
        If there is no such way.
    """
    with ExitStack() as stack:
        for replacement in replacements(way):
            stack.enter_context(replacement)
        yield


def replacements(way: str) -> list[Any]:
    if epochs(way):
        return []  # a parameter of the method
    if way in NAMED:
        return NAMED[way]()
    for pattern, of_number in NUMBERED.items():
        before, number = pattern[:-1], way.removeprefix(pattern[:-1])
        if way.startswith(before) and is_number(number):
            return of_number(float(number))
    allowed = ", ".join([*NAMED, *NUMBERED, "E epochs"])
    raise SystemExit(f"there is no way {way!r}; allowed: {allowed}")


def is_number(word: str) -> bool:
    return word.replace(".", "", 1).isdecimal()


def epochs(way: str) -> dict[str, int]:
    """Return the parameters of "E epochs", none of other ways."""
    number, _, rest = way.partition(" ")
    return {"n_epochs": int(number)} if rest == "epochs" and number.isdecimal() else {}
