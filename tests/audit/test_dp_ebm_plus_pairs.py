"""What a curator says of a pair of features: every number has noise of its own."""

import numpy as np
import pandas as pd
import pytest

from dprepro.additive.bins import Pair
from dprepro.audit.case import categories
from dprepro.data.domain import CategoricalFeature, Domain
from dprepro.estimators.inputs import Rows
from dprepro.methods.dp_ebm_plus.curator import ExactAnswers, PlusCurator
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, SQUARED
from dprepro.methods.dp_ebm_plus.queries import Merge, PairResiduals, Start, pair_norm
from dprepro.privacy.gdp import epsilon_of
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.private_rows import Private

NAMES = ("a", "b", "c")
FEATURES = tuple(CategoricalFeature(f"x{k}", NAMES) for k in range(2))
GROUPS = np.arange(len(NAMES), dtype=np.uint8)
PAIR = Pair(0, 1, GROUPS, GROUPS)
BUDGET = (epsilon_of(1.0, 1e-6), 1e-6)


@pytest.mark.parametrize("loss", [LOGISTIC, SQUARED], ids=["classification", "regression"])
def test_the_two_numbers_of_a_cell_have_different_noise(loss):
    """Sums of residuals, and of curvatures or rows: together they would say what noise hides."""
    place = np.arange(60)
    codes = place % 3, place // 3 % 3
    frame = pd.DataFrame({f"x{k}": categories(code, NAMES) for k, code in enumerate(codes)})
    rows = Rows(frame, (place % 2).astype(float))
    domain = Domain(FEATURES, ("0", "1") if loss is LOGISTIC else (0.0, 1.0))
    exact = ExactAnswers.of(rows, domain, loss)
    ledger = Ledger(*BUDGET, "add/remove-one")
    curator = PlusCurator(Private(rows), domain, loss, ledger, seed=0)
    curator.open_epochs(1.0, 4, BUDGET, has_pairs=True)
    for told in (*(Merge(k, np.array([0, 1, 2, 2]), 3) for k in range(2)), Start(0)):
        curator.tell(told)
        exact.follow(told)
    query = PairResiduals(pair_norm(loss, 0.5), 1.0, PAIR, 0.5, loss)
    release = curator.answer(query)
    noise = (release.value - exact.answer(query).value) / release.scale
    assert noise.shape == (2, PAIR.n_cells)
    assert np.unique(noise.round(9)).size == noise.size
    assert 0.4 < noise.std() < 2.0
