"""Explanations come from the models that a run would fit, on rows they have not seen."""

from pathlib import Path

import numpy as np
import pytest

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.experiment.config import load_config
from dprepro.release.fitting import choose_tasks, column_names, explain
from dprepro.runtime.errors import DpreproError

CONFIG = """
dataset: breast-cancer
metric: auc
domain: public
epsilons: [8]
delta: 1e-5
splits: 1
seed: 1
methods:
  - method: dp-llm
    params: {n_maps: 3, n_projected: null, epochs: 3, batch_size: 64, accountant: moments}
  - {method: llm, params: {n_maps: 3, n_projected: null, epochs: 3, batch_size: 64}}
  - {method: mlp, params: {hidden_layer_sizes: [5], max_iter: 3}}
  - ebm
"""


@pytest.fixture
def config(tmp_path: Path):
    path = tmp_path / "explained.yaml"
    path.write_text(CONFIG)
    return load_config(path)


def test_filters_weights_and_attributions_of_the_rows_asked_for(config):
    tasks = choose_tasks(config, ["dp-llm", "llm", "mlp"])
    found = explain(config, tasks, [4, 0], top=2)
    assert found.inputs.shape == (2, 30)
    assert ((found.inputs >= 0) & (found.inputs <= 1)).all()
    assert len(found.names) == 30
    assert set(found.labels) <= {"malignant", "benign"}
    private, plain, network = found.models
    assert private.title == "dp-llm, ε=8"
    assert plain.title == "llm"
    assert [m.vectors.shape for m in found.models] == [(2, 2, 30)] * 3
    assert network.captions == (("integrated", "smoothed"),) * 2
    for first, second in private.captions:
        assert 1 >= float(first) >= float(second) >= 0
    assert np.isfinite(private.vectors).all()


def test_what_cannot_be_explained_is_refused(config):
    with pytest.raises(
        DpreproError, match="no held-out row 114: rows count from 0, and there are fewer"
    ):
        explain(config, choose_tasks(config, ["llm"]), [114], top=1)
    with pytest.raises(DpreproError, match="ebm has no filters to draw and no gradients"):
        explain(config, choose_tasks(config, ["ebm"]), [0], top=1)


def test_categories_become_columns_of_their_own():
    domain = Domain(
        (NumericFeature("age", 0, 1), CategoricalFeature("sex", ("f", "m"))), ("0", "1")
    )
    assert column_names(domain) == ("age", "sex = f", "sex = m")
