"""A tree as text, SQL, Python and ONNX says what `predict` says, on odd and missing values too."""

import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.methods.equal_width_bins import Bins
from dprepro.methods.privatree import export
from dprepro.methods.privatree.bins import Tree
from dprepro.methods.privatree.estimator import PrivaTreeClassifier
from dprepro.methods.privatree.rules import Leaf, Question, questions, to_text
from dprepro.release.predicting import NewRows
from tests.additive import small
from tests.additive.export import odd
from tests.additive.export.conftest import database  # noqa: F401  a fixture
from tests.additive.export.test_onnx import run_graph
from tests.methods.privatree.test_estimator import DOMAIN, table


def grown(domain, seed, depth=4):
    """Return a tree whose cuts and labels are drawn, so that each feature and bin is in some."""
    model = PrivaTreeClassifier(max_depth=1, domain=DOMAIN, random_state=0).fit(*table())
    rng = np.random.default_rng(seed)
    bins = [Bins.of(feature, 10) for feature in domain.features]
    inner = 2**depth - 1
    feature = rng.integers(0, len(bins), inner)
    last = np.array([rng.integers(0, bins[k].count) for k in feature])
    model.domain_, model.bins_ = domain, bins
    model.tree_ = Tree(feature, last, rng.integers(0, 2, inner + 1))
    model.classes_ = np.array(domain.target)
    model._column_names = names = [str(feature.name) for feature in domain.features]
    model.feature_names_in_, model.n_features_in_ = np.array(names, dtype=object), len(names)
    return model


@pytest.fixture(scope="module")
def additive():
    """An additive model of the features of odd rows, whose notes a tree is to have."""

    def named(name, categories, missing):
        labels = [*map("bin {}".format, range(len(categories))), *["(missing)"] * missing]
        return small.feature(
            name, len(labels), len(categories) if missing else None, labels, kind="categorical",
            categories=list(categories), groups=list(range(len(categories))),
        )  # fmt: skip

    age, select = small.numeric("age", [50.0], own_bin=True), small.numeric("select", [0.0])
    features = [
        {**age, "lower": 18.0, "upper": 90.0}, {**select, "lower": -5.0, "upper": 5.0},
        named("town", odd.TOWNS, True), named(odd.QUOTED, ("a", "b", " c"), False),
    ]  # fmt: skip
    return small.model(features=features)


def domain_of(model):
    return Domain(tuple(bins.feature for bins in model.bins_), ("no", "yes"))


def expected(model, additive, rows, folder):
    """Return labels and leaves by the tree on rows as `dprepro predict` reads them, and notes."""
    said = odd.predicted(additive, rows, folder)
    assert said is not None
    ((X, _),) = NewRows(folder / "rows.csv", additive).chunks()
    X = X[[str(bins.feature.name) for bins in model.bins_]]
    codes = np.stack([bins.encode(X[bins.feature.name]) for bins in model.bins_])
    numbered = Tree(model.tree_.feature, model.tree_.last, np.arange(len(model.tree_.label)))
    return model.predict(X).tolist(), numbered.labels_of(codes).tolist(), said.columns["notes"]


@pytest.mark.parametrize("seed", range(4))
def test_python_says_what_predict_says(seed, additive, tmp_path):
    model = grown(domain_of(additive), seed)
    labels, leaves, notes = expected(model, additive, odd.random_rows(seed), tmp_path)
    (tmp_path / "tree.py").write_text(export.to_python(model), encoding="utf-8")
    outcome = subprocess.run(
        [sys.executable, "-I", "-S", "tree.py", "rows.csv"],
        cwd=tmp_path, capture_output=True, encoding="utf-8", check=True,
    )  # fmt: skip
    found = odd.read(outcome.stdout)
    assert found == {"prediction": labels, "leaf": [*map(str, leaves)], "notes": notes}
    assert len(set(leaves)) > 3


@pytest.mark.parametrize("seed", range(3))
def test_databases_say_what_predict_says(seed, additive, database, tmp_path):  # noqa: F811
    model = grown(domain_of(additive), seed)
    rows = odd.random_rows(seed + 10)
    labels, leaves, notes = expected(model, additive, rows, tmp_path)
    query = export.to_sql(model, "rows", database.name)
    rows = {**rows, "id": [str(k) for k in range(len(leaves))]}
    found = database.answer(
        f"SELECT * FROM ({query}) AS said ORDER BY CAST(id AS INTEGER)",
        "rows", dict.fromkeys(rows, "VARCHAR"), list(zip(*rows.values(), strict=True)),
    )  # fmt: skip
    assert found["prediction"] == labels
    assert [int(leaf) for leaf in found["leaf"]] == leaves
    assert found["notes"] == notes


def test_a_database_says_nothing_where_predict_refuses(additive, database):  # noqa: F811
    """Also where no path of the tree asks for the value."""
    model = grown(domain_of(additive), 0)
    model.tree_ = Tree(np.full(3, 3), np.zeros(3, int), np.array([1, 0, 0, 1]))
    rows = {"age": ["30", "inf"], "select": ["x", "1"], "town": ["Bonn"] * 2, odd.QUOTED: ["a"] * 2}
    found = database.answer(
        export.to_sql(model, "rows", database.name), "rows", dict.fromkeys(rows, "VARCHAR"),
        list(zip(*rows.values(), strict=True)),
    )  # fmt: skip
    assert found["prediction"] == found["leaf"] == [None, None]
    assert found["notes"] == ["select: not a number", "age: infinite"]


@pytest.mark.parametrize("seed", range(3))
def test_the_graph_says_what_predict_says(seed, additive, tmp_path):
    pytest.importorskip("onnx")
    model = grown(domain_of(additive), seed)
    labels, leaves, notes = expected(model, additive, odd.random_rows(seed), tmp_path)
    X = odd.as_read(additive, tmp_path / "rows.csv")
    graph = export.to_onnx(model).SerializeToString()
    found = run_graph(graph, X)
    assert found["prediction"].tolist() == labels
    assert found["leaf"].tolist() == leaves
    assert found["notes"].tolist() == notes
    X.loc[0, "age"] = np.inf
    found = run_graph(graph, X)
    assert (found["prediction"][0], found["leaf"][0]) == ("", -1)
    assert found["leaf"][1:].tolist() == leaves[1:]


@pytest.mark.parametrize("seed", range(6))
def test_values_at_and_beside_each_edge_go_where_predict_sends_them(seed):
    """An edge belongs to the bin below it, a cut of an additive model to the bin above it."""
    domain = Domain(
        (NumericFeature("x", -1, 1), NumericFeature("z", 0, 3, missing=True)), ("0", "1")
    )
    model = grown(domain, seed)
    edges = np.concatenate([bins.edges for bins in model.bins_] + [[-2.0, 9.0, -0.0]])
    values = np.concatenate([edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf)])
    x, z = np.meshgrid(values, np.append(values, np.nan))
    X = pd.DataFrame({"x": x.ravel(), "z": z.ravel()})
    scope = {"__name__": "tree"}
    exec(export.to_python(model), scope)
    found = [scope["predict"](scope["MODEL"], row)["prediction"] for row in X.to_dict("records")]
    assert found == model.predict(X).tolist()


def answered(node, row, bins):
    """Follow the questions as a reader would."""
    while isinstance(node, Question):
        node = node.yes if says_yes(node.text, row, bins) else node.no
    assert isinstance(node, Leaf)
    return node.label


def says_yes(text, row, bins):
    for each in bins:
        name = str(each.feature.name)
        if not text.startswith(f"{name} "):
            continue
        value, asked = row[name], text[len(name) + 1 :]
        is_missing = value is None or value != value
        if asked == "is known":
            return not is_missing
        if asked.startswith("<= "):
            return not is_missing and value <= float(asked[3:])
        return not is_missing and value in asked.removeprefix("is ").split(" or ")
    raise AssertionError(text)


@pytest.mark.parametrize("seed", range(6))
def test_questions_lead_each_row_to_its_label(seed):
    features = (
        NumericFeature("x", 0, 10), NumericFeature("z", 0, 5, missing=True),
        CategoricalFeature("c", ("u", "v", "w")), CategoricalFeature("d", ("p",), missing=True),
    )  # fmt: skip
    model = grown(Domain(features, ("no", "yes")), seed)
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({
        "x": rng.integers(-2, 13, 200).astype(float),
        "z": np.where(rng.random(200) < 0.3, np.nan, rng.integers(0, 11, 200) / 2),
        "c": rng.choice(["u", "v", "w", "new"], 200),
        "d": rng.choice(np.array(["p", None, "q"], dtype=object), 200),
    })  # fmt: skip
    X_known = X.assign(d=X["d"].where(X["d"] != "q", None))  # no bin of its own: as missing
    root = questions(model)
    found = [answered(root, row, model.bins_) for row in X_known.to_dict("records")]
    assert found == model.predict(X).tolist()
    text = to_text(model)
    assert text.count("?\n") == len(re.findall(r"^ *yes:$", text, re.MULTILINE))
    assert len(set(re.findall(r"(no|yes)$", text, re.MULTILINE))) >= 1


def test_what_is_answered_is_not_asked_again():
    model = grown(Domain((NumericFeature("x", 0, 10),), ("no", "yes")), 0, depth=2)
    model.tree_ = Tree(np.zeros(3, int), np.array([4, 7, 2]), np.array([0, 1, 0, 1]))
    assert questions(model) == Question("x <= 5", Leaf("no"), Leaf("yes"))
    assert to_text(model).startswith("x <= 5?\n  yes:\n    no\n  no:\n    yes\n")
