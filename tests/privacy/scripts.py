"""What real fits ask and tell their curators, which curators of other rows then follow.

What answers a script holds does not matter: noise can make them anything.
"""

from __future__ import annotations

import copy
import inspect
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, is_regressor

from dprepro.privacy.ledger import Ledger
from dprepro.privacy.private_rows import Private
from dprepro.privacy.sampling import ExactSampler
from tests.privacy.curators import Fit
from tests.privacy.overheard import Ears, Heard

LOUD = 2**14

X, Z, CATEGORY, TARGET = range(4)
"""The columns of rows here, float64 (n, 4): in [0, 1], but for targets beyond their bounds."""


@dataclass
class Script:
    """How a fit made its curator, and each call of it: name, arguments, and what it returned."""

    fit: Fit
    seed: int
    given: dict[str, Any] = field(default_factory=dict)
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any], Any]] = field(default_factory=list)

    @classmethod
    def of(cls, fit: Fit, rows: np.ndarray, seed: int, loud: tuple[str, ...] = ()) -> Script:
        """Return the script of a fit to some rows.

        The samplers that are `loud` draw what is unlikely: it moves functions and weights far away.
        """
        script, curator, calling = cls(fit, seed), fit.curator, [False]
        names = [*inspect.signature(curator.__init__).parameters][1:]
        begin = curator.__init__

        def begun(made: Any, *given: Any, **named: Any) -> None:
            arguments = dict(zip(names, given, strict=False)) | named
            script.given = {name: _kept(value) for name, value in arguments.items()}
            begin(made, *given, **named)

        def overheard(name: str, method: Any) -> Any:
            def called(made: Any, *given: Any, **named: Any) -> Any:
                if calling[0]:
                    return method(made, *given, **named)
                kept, calling[0] = tuple(map(_kept, given)), True
                result = method(made, *given, **named)
                calling[0] = False
                script.calls.append((name, kept, named, result))
                return result

            return called

        with pytest.MonkeyPatch.context() as patch:
            for name, method in inspect.getmembers(curator, inspect.isfunction):
                if not name.startswith("_"):
                    patch.setattr(curator, name, overheard(name, method))
            patch.setattr(curator, "__init__", begun)
            if loud:
                _raise_noise(patch, loud)
            _fit_to(fit, rows, seed)
        return script

    def follow(self, rows: Private[Any], ears: Ears) -> list[Heard]:
        """Return the exact answers of a curator of other rows."""
        ears.start(self.seed)
        given = {
            name: rows if isinstance(value, Private) else _kept(value)
            for name, value in self.given.items()
        }
        curator: Any = self.fit.curator(**given)
        for name, arguments, named, ears.released in self.calls:
            getattr(curator, name)(*map(_kept, arguments), **named)
        return ears.heard


def _kept(value: Any) -> Any:
    """Return a copy of what a curator changes: a ledger, or a library's model."""
    return copy.deepcopy(value) if isinstance(value, BaseEstimator | Ledger) else value


def _raise_noise(patch: pytest.MonkeyPatch, loud: tuple[str, ...]) -> None:
    """Let some noise be `LOUD` times as large, or larger by so many standard deviations."""
    factors = np.random.default_rng(0)
    for name in {*loud} - {"normals"}:
        draw = getattr(ExactSampler, name)

        def raised(*given: Any, draw: Any = draw) -> np.ndarray:
            drawn = draw(*given)
            return np.asarray(drawn * factors.choice([1, LOUD], drawn.shape))

        patch.setattr(ExactSampler, name, raised)
    words = ExactSampler.normals

    def normals(*given: Any) -> np.ndarray:
        drawn = words(*given)
        drawn[..., 0] += np.uint64(LOUD)  # the whole part
        return drawn

    if "normals" in loud:
        patch.setattr(ExactSampler, "normals", normals)


def _fit_to(fit: Fit, rows: np.ndarray, seed: int = 0) -> None:
    frame = pd.DataFrame({"x": rows[:, X], "z": rows[:, Z]})
    frame["c"] = np.where(rows[:, CATEGORY] > 0.5, "b", "a")
    numeric = is_regressor(fit.model)
    fit.model.set_params(random_state=seed)
    fit.fit(frame, 3 * rows[:, TARGET] - 1 if numeric else (rows[:, TARGET] > 0.5).astype(int))


class _Reached(BaseException):
    """Rows have reached a curator."""


def read(fit: Fit, rows: np.ndarray) -> Private[Any]:
    """Return rows as a fit hands them to its curator."""

    def begun(_: Any, *given: Any, **named: Any) -> None:
        raise _Reached(*(a for a in (*given, *named.values()) if isinstance(a, Private)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit.curator, "__init__", begun)
        try:
            _fit_to(fit, rows)
        except _Reached as reached:
            (private,) = reached.args
            return private
    raise AssertionError(f"a fit made no {fit.curator.__name__}")
