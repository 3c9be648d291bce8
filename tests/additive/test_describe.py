"""What is said of noise bands follows from the model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dprepro.additive.describe import bands_in_words
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


@pytest.mark.parametrize("epsilon", [0.1, 8.0])
def test_page_and_statement_say_what_bands_do_not_hold(epsilon: float) -> None:
    """An effect lay far outside its band, and neither page nor statement said why."""
    domain = Domain((NumericFeature("x", 0.0, 1.0),), ("no", "yes"))
    fitted = DPEBMPlusClassifier(epsilon, 1e-5, domain=domain, n_epochs=2, random_state=1)
    model = model_from_json(model_to_json(fitted.fit(X, Y)))
    said = bands_in_words(model)
    assert "noise alone" in said[0]
    assert "drawn towards 0" in said[1]
    page = model_page(model, "a model")
    statement = state(model, b"", publisher())
    for text in (page, as_html(statement), as_markdown(statement)):
        assert all(sentence in " ".join(text.split()) for sentence in said)
    assert page.index('id="bands"') < page.index('id="functions-list"')


def test_a_model_without_known_noise_has_no_band_to_explain() -> None:
    model = EBMClassifier(n_epochs=2, outer_bags=1, random_state=0).fit(X, Y)
    assert bands_in_words(model) == []
    assert 'id="bands"' not in model_page(model, "a model")
