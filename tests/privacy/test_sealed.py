"""No curator keeps an exact value where others can reach it: all of them are inside `Private`.

Neighbouring tables are fitted with the same seed. What can be reached from the curator, after every
query and instruction and at the end, has to be the same for both.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dprepro.methods.dp_ebm.curator import DPEBMCurator
from dprepro.privacy.curator_base import Curator, listening
from dprepro.privacy.private_rows import Private
from dprepro.privacy.query import Instruction, NoisyAnswer, Query
from tests.privacy.contents import contents
from tests.privacy.curators import FITS, Fit, curator_classes, exchanged, table

Contents = dict[str, Hashable]

FITS_FILE = "tests/privacy/curators.py"

SPENT = "._spent"
"""Of `GaussianUses`: the sum of the shares that were asked for, which are made of releases."""

STREAMS = (".sampler._bits._state", ".sampler._bits._later")
"""Of `NoiseSource`: where the streams of secret bits stand. How many bits a choice takes depends on
the utilities. The states have to stay secret in any case: they tell all noise."""


class Watch:
    """Looks at every curator that is made while it listens."""

    def __init__(self, curator: type[Curator]) -> None:
        self.made: list[Curator] = []
        self.seen: list[Contents] = []
        self._class = curator

    def start(self, monkeypatch: pytest.MonkeyPatch) -> None:
        begin = Curator.__init__

        def noticed(curator: Curator, *given: Any, **more: Any) -> None:
            begin(curator, *given, **more)
            if type(curator) is self._class:
                self.made.append(curator)

        monkeypatch.setattr(Curator, "__init__", noticed)

    def look(self) -> None:
        for curator in self.made:
            self.seen.append(contents(vars(curator), seen={id(self), id(curator)}))

    def asked(self, query: Query, release: NoisyAnswer) -> None:
        self.look()

    def told(self, instruction: Instruction) -> None:
        self.look()


def looks(fit: Fit, X: pd.DataFrame, y: np.ndarray) -> list[Contents]:
    """Return what could be reached from the curator of a fit at each look, the last one last."""
    watch = Watch(fit.curator)
    with pytest.MonkeyPatch.context() as patch, listening(watch):
        watch.start(patch)
        fit.fit(X, y)
    watch.look()
    assert watch.made, f"the fit makes no {fit.curator.__name__}: mend it in {FITS_FILE}"
    return watch.seen


def open_to_all(fit: Fit) -> set[str]:
    """Return the paths to values that depend on a row."""
    X, y = table()
    before, other = looks(fit, X, y), looks(fit, *exchanged(X, y))
    fewer = looks(fit, X[:-1], y[:-1])
    found = {path for one, two in _pairs(before, other) for path in _different(one, two)}
    for one, two in _pairs(before, fewer):
        found |= _different(_shapes(one), _shapes(two))
    listed = tuple(f"[{attribute!r}]" for attribute in fit.listed)
    return {path for path in found if not (path.startswith(listed) or path.endswith(_SECRET))}


_SECRET = (SPENT, *STREAMS)


def _pairs(one: list[Contents], two: list[Contents]) -> list[tuple[Contents, Contents]]:
    """Return looks after the same query or instruction, and the last ones."""
    return [*zip(one, two, strict=False), (one[-1], two[-1])]


def _different(one: Contents, two: Contents) -> set[str]:
    return {path for path in one.keys() | two.keys() if one.get(path) != two.get(path)}


def _shapes(look: Contents) -> Contents:
    return {path: value[0] for path, value in look.items() if isinstance(value, tuple)}


def test_every_curator_has_a_fit_here() -> None:
    looked_at = [fit.curator for fit in FITS.values()]
    missing = [
        made.__qualname__
        for made in curator_classes()
        if not any(issubclass(curator, made) for curator in looked_at)
    ]
    assert not missing, (
        f"no test looks at what {sorted(missing)} keep: add to FITS in {FITS_FILE} a "
        "Fit(TheCurator, TheEstimator(domain=LABELS, random_state=0).fit) for each"
    )


@pytest.mark.parametrize("name", FITS)
def test_nothing_that_depends_on_a_row_can_be_reached(name: str) -> None:
    found = open_to_all(FITS[name])
    assert not found, (
        f"{FITS[name].curator.__name__} keeps what depends on rows in {sorted(found)}: hold it "
        "inside Private, and open that once a query"
    )


# --- planted faults -------------------------------------------------------------------------------


def plant(
    patch: pytest.MonkeyPatch, curator: type[Curator], keep: Callable[[Any, Any], None]
) -> None:
    """Let a curator keep something of the rows that it is given."""
    begin = curator.__init__

    @functools.wraps(begin)
    def keeping(self: Any, *given: Any, **more: Any) -> None:
        private = next(v for v in (*given, *more.values()) if isinstance(v, Private))
        begin(self, *given, **more)
        keep(self, private._Private__value)  # type: ignore[attr-defined]

    patch.setattr(curator, "__init__", keeping)


@pytest.mark.parametrize("name", FITS)
def test_planted_rows_kept_by_any_curator_are_found(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch, FITS[name].curator, lambda made, rows: setattr(made, "_planted", rows))
    assert any(path.startswith("['_planted']") for path in open_to_all(FITS[name]))


def _in_a_generator(targets: np.ndarray) -> Any:
    made = (k for k in range(targets.size) if targets[k])
    next(made)
    return made


def _in_a_closure(targets: np.ndarray) -> Callable[[], np.ndarray]:
    return lambda: targets


PLACES: dict[str, Callable[[np.ndarray], Any]] = {
    "as it is": lambda targets: targets,
    "their number": lambda targets: np.zeros(targets.size),
    "their sum": lambda targets: float(targets.sum()),
    "as a Series": pd.Series,
    "in containers": lambda targets: {"a": [(targets,)]},
    "as objects": lambda targets: targets.astype(object),
    "in a closure": _in_a_closure,
    "in a partial": lambda targets: functools.partial(np.add, targets),
    "in a bound method": lambda targets: pd.Series(targets).sum,
    "in a generator": _in_a_generator,
}


@pytest.mark.parametrize("place", PLACES)
def test_planted_targets_are_found_wherever_they_are_kept(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(
        monkeypatch,
        DPEBMCurator,
        lambda made, rows: setattr(made, "_targets", PLACES[place](rows.targets)),
    )
    found = open_to_all(FITS["dp-ebm, classification"])
    assert found
    assert all(path.startswith("['_targets']") for path in found)


def test_planted_targets_inside_private_are_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, DPEBMCurator, lambda made, rows: setattr(made, "_kept", Private(rows)))
    assert not open_to_all(FITS["dp-ebm, classification"])


def test_what_cannot_be_looked_into_is_not_passed_over() -> None:
    with pytest.raises(TypeError, match="teach"):
        contents({"a": memoryview(b"1")})
