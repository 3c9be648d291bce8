"""Which labels there are is the domain's to say: a table may lack one of them."""

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import Domain, NumericFeature
from dprepro.methods.dp_bag.estimator import DPBagClassifier
from dprepro.methods.dp_ebm.ebm import EBMClassifier
from dprepro.methods.dp_ebm.estimator import DPEBMClassifier
from dprepro.methods.dpboost.estimator import DPBoostClassifier
from dprepro.methods.lazybb.estimator import LazyBBClassifier, OneRule, TopDownTree

FEATURES = (NumericFeature("x", 0, 1),)
PUBLIC = Domain(FEATURES, ("yes", "no"))
ESTIMATORS = pytest.mark.parametrize(
    "estimator",
    [
        DPEBMClassifier(2.0, n_epochs=5, random_state=0),
        DPEBMClassifier(2.0, n_epochs=5, sensitivity="sound", adjacency="add/remove-one"),
        DPBoostClassifier(2.0, variant="sound", n_trees=3),
        DPBoostClassifier(2.0, variant="as-published", n_trees=3),
        DPBagClassifier(teachers=5, partitions=2, epsilon=20.0),
        DPBagClassifier(teachers=5, partitions=2, epsilon=20.0, inputs="domain"),
        LazyBBClassifier(rounds=3, epsilon=2.0),
        LazyBBClassifier("topdown", rounds=3, epsilon=2.0, diagnostics=True),
        LazyBBClassifier(rounds=3, epsilon=np.inf, diagnostics=True),
        OneRule(),
        TopDownTree(),
    ],
    ids=[
        "dp-ebm",
        "dp-ebm-sound",
        "dpboost-sound",
        "dpboost",
        "dp-bag",
        "dp-bag-sound",
        "lazybb-1r",
        "lazybb-topdown",
        "boosted-1r",
        "dp-one-rule",
        "tree",
    ],
)


def rows(n=60):
    """Return rows that every estimator takes: LazyBB wants 0 and 1."""
    return pd.DataFrame({"x": np.random.default_rng(0).integers(0, 2, n)})


@ESTIMATORS
@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (np.array(["no", "yes"]), ["no", "yes"]),
        (np.array(["no", "yes"], dtype=object), ["no", "yes"]),
        (np.array([0, 1]), [0, 1]),
        (np.array([0.0, 1.0]), [0.0, 1.0]),
        (np.array([False, True]), [False, True]),
    ],
    ids=["text", "object", "codes", "floats", "booleans"],
)
@pytest.mark.parametrize("only", [0, 1])
def test_a_table_with_one_label_has_the_classes_of_one_with_both(estimator, labels, classes, only):
    X = rows()
    both = estimator.set_params(domain=PUBLIC).fit(X, labels[np.arange(60) % 2]).classes_
    one = estimator.fit(X, np.repeat(labels[only : only + 1], 60))
    assert one.classes_.tolist() == both.tolist() == classes
    assert one.classes_.dtype == both.dtype == labels.dtype
    scores = getattr(one, "decision_function", None) or one.predict_proba
    assert np.isfinite(scores(X)).all()
    assert set(one.predict(X)) <= set(classes)


def test_a_table_with_one_label_is_learnt_from():
    model = DPEBMClassifier(8.0, domain=PUBLIC, random_state=0).fit(rows(500), ["no"] * 500)
    assert (model.predict_proba(rows())[:, 0] > 0.65).all()
    assert (model.predict(rows()) == "no").all()


@ESTIMATORS
@pytest.mark.parametrize(
    "other",
    [
        ["no", "perhaps"],
        [0, 2],
        [-1, 1],
        [0.5, 1.0],
        [True, 2],
        ["0", "1"],
        [b"no", b"yes"],
    ],
    ids=str,
)
def test_labels_outside_the_domain_are_refused_without_being_shown(estimator, other):
    y = np.resize(np.array(other), 60)
    allowed = (
        "domain's labels 'yes' and 'no' as text, or their|^y holds values of type .S3, which no"
    )
    with pytest.raises(ValueError, match=allowed) as e:
        estimator.set_params(domain=PUBLIC).fit(rows(), y)
    assert "perhaps" not in str(e.value)


@ESTIMATORS
@pytest.mark.filterwarnings("ignore::dprepro.estimators.inputs.PrivacyWarning")
def test_without_a_public_domain_both_labels_have_to_occur(estimator):
    observed = Domain(FEATURES, ("a", "b"), observed=("bounds of x",))
    for domain in (None, observed):
        estimator.set_params(domain=domain)
        with pytest.raises(ValueError, match="y must hold both labels"):
            estimator.fit(rows(), np.zeros(60))
    model = estimator.set_params(domain=None).fit(rows(), np.arange(60) % 2 + 1)
    assert model.classes_.tolist() == [1, 2]


def test_a_model_without_privacy_needs_both_labels():
    with pytest.raises(ValueError, match="y must hold both labels"):
        EBMClassifier().fit(rows(), np.zeros(60))
