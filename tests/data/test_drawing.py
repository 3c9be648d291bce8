import numpy as np

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature, sample_features


def test_rows_lie_in_the_domain_and_every_category_occurs():
    domain = Domain((NumericFeature("x", -2, 3), CategoricalFeature("c", ("a", "b", "d"))), ("0",))
    frame = sample_features(domain, 30, np.random.default_rng(0))
    assert list(frame.columns) == ["x", "c"]
    assert frame["x"].between(-2, 3).all()
    assert frame["x"].nunique() == 30
    assert frame["c"].value_counts().to_dict() == {"a": 10, "b": 10, "d": 10}
