"""What is said of noise bands follows from the model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dprepro.additive.describe import FEW_ROWS, bands_in_words
from dprepro.additive.file import model_from_json, model_to_json
from dprepro.data.domain import Domain, NumericFeature
from dprepro.methods.dp_ebm.ebm import EBMClassifier
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier
from dprepro.release.statement import state
from dprepro.release.statement_pages import as_html, as_markdown
from dprepro.report.model_page import model_page
from tests.release.models import publisher

X = pd.DataFrame({"x": np.linspace(0, 1, 400)})
Y = (X["x"].to_numpy() > 0.5).astype(int)


def loaded(epsilon: float):
    domain = Domain((NumericFeature("x", 0.0, 1.0),), ("no", "yes"))
    fitted = DPEBMPlusClassifier(epsilon, 1e-5, domain=domain, n_epochs=2, random_state=1)
    return model_from_json(model_to_json(fitted.fit(X, Y)))


@pytest.mark.parametrize(("epsilon", "few"), [(0.1, True), (8.0, False)])
def test_a_fit_with_few_rows_for_its_noise_says_so_strongest(epsilon: float, few: bool) -> None:
    """The reader's effect lay far outside its band, and neither page nor statement said why."""
    model = loaded(epsilon)
    said = bands_in_words(model)
    assert ("noise alone" in said[0]) != few
    assert ("guesses of how large effects may be" in said[0]) == few
    assert "drawn towards 0" in said[0 if few else 1]
    assert any(FEW_ROWS in entry.releases for entry in model.ledger_.entries) == few
    assert ("Read no single function" in said[-1]) == few
    page = model_page(model, "a model")
    statement = state(model, b"", publisher())
    for text in (page, as_html(statement), as_markdown(statement)):
        assert all(sentence in " ".join(text.split()) for sentence in said)
        assert ("Read no single function" in text) == few
    assert ('id="bands" class="outcome incomplete"' in page) == few
    assert page.index('id="bands"') < page.index('id="functions-list"')


def test_a_model_without_known_noise_has_no_band_to_explain() -> None:
    model = EBMClassifier(n_epochs=2, outer_bags=1, random_state=0).fit(X, Y)
    assert bands_in_words(model) == []
    assert 'id="bands"' not in model_page(model, "a model")
