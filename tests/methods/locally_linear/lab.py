"""A small table, settings of a fit, and the curator of both."""

from __future__ import annotations

import numpy as np

from dprepro.methods.locally_linear.curator import LLMCurator, Noise, Project
from dprepro.methods.locally_linear.gradients import FitSettings, NumericRows
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.private_rows import Private
from dprepro.privacy.sensitivity import ZERO_OUT

ROWS, FEATURES, MAPS, CLASSES = 60, 4, 2, 3
SHAPE = (MAPS, CLASSES, FEATURES + 1)

PARAMS = FitSettings(
    epochs=4, batch_size=20, learning_rate=0.1, decay=0.5, decay_every=2, beta=1.0, clip=0.5,
    sampling="poisson",
)  # fmt: skip
CLAIM = Noise(2.0, None)


def rows(n: int = ROWS) -> NumericRows:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, FEATURES)).astype(np.float32)
    return NumericRows(X, rng.integers(0, CLASSES, n))


def theta(shape: tuple[int, ...] = SHAPE) -> np.ndarray:
    return np.zeros(shape, dtype=np.float32)


def ledger(adjacency: str = ZERO_OUT, gaps: tuple[str, ...] = ()) -> Ledger:
    return Ledger(1.0, 1e-5, adjacency, gaps=list(gaps))


def curator(
    given: NumericRows | None = None,
    params: FitSettings = PARAMS,
    noise: Noise = CLAIM,
    *,
    shape: tuple[int, ...] = SHAPE,
    projections: np.ndarray | None = None,
    states: Ledger | None = None,
    seed: int = 0,
) -> LLMCurator:
    private = Private(rows() if given is None else given)
    made = LLMCurator(private, shape, params, noise, states or ledger(), seed, ())
    made.tell(Project(projections))
    return made
