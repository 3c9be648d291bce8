"""Rows of a table in chunks are those of the whole table in memory, whatever the chunks."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature, category_codes
from dprepro.estimators.inputs import (
    FitRows,
    Rows,
    read_training_arrays,
    read_training_rows,
    resolve_domain_of,
    wrap_training_arrays,
)
from dprepro.methods.dp_ebm.ebm import EBMClassifier
from dprepro.methods.dp_ebm.estimator import DPEBMClassifier, DPEBMRegressor
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.methods.dpboost.estimator import DPBoostClassifier
from dprepro.privacy.private_rows import Private, PrivateRowsError
from dprepro.rows.chunked import ChunkedRows
from dprepro.rows.readers import TableError
from dprepro.rows.table import Table
from tests.rows import tables
from tests.rows.tables import FEATURES, FORMATS, LABELS, NAMES, RANGE, N, joined


def opened(private: Private[Any]) -> Any:
    return private._Private__value  # type: ignore[attr-defined]


def read(source: Any, y: Any, domain: Domain = LABELS, model: Any = None) -> Any:
    task = "regression" if domain is RANGE else "binary"
    model = DPEBMClassifier(domain=domain) if model is None else model
    return opened(read_training_rows(model, source, y, domain, task, in_chunks=True))


def check_equal(found: Rows, wanted: Rows) -> None:
    assert list(found.frame.columns) == list(wanted.frame.columns) == NAMES
    assert found.targets.dtype == wanted.targets.dtype
    np.testing.assert_array_equal(found.targets, wanted.targets)
    for feature in FEATURES:
        one, two = found.frame[feature.name], wanted.frame[feature.name]
        np.testing.assert_array_equal(one.isna(), two.isna())
        if isinstance(feature, CategoricalFeature):
            codes = category_codes(one, feature.categories)
            np.testing.assert_array_equal(codes, category_codes(two, feature.categories))
            assert (codes[~one.isna()] >= 0).all()
        else:
            assert one.dtype == np.float64
            np.testing.assert_array_equal(one, two.to_numpy(dtype=float, na_value=np.nan))


@pytest.fixture(scope="module", params=FORMATS)
def source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return FORMATS[request.param](tables.frame(), tmp_path_factory.mktemp("table"))


@pytest.mark.parametrize("chunk_rows", [7, 100, N, N + 1, 1000, None])
def test_chunks_hold_what_the_whole_table_holds(source: Any, chunk_rows: int | None) -> None:
    frame = tables.in_memory(source)
    for domain, y in ((LABELS, "y"), (RANGE, "z")):
        wanted = read(frame[NAMES], frame[y], domain)
        chunked = replace(read(source, y, domain), chunk_rows=chunk_rows)
        sizes = [len(rows.targets) for rows in chunked.chunks()]
        full = min(chunk_rows or N, N)
        assert sizes == [full] * (N // full) + [N % full] * (N % full > 0)
        check_equal(joined(chunked), wanted)


@pytest.mark.parametrize("name", FORMATS)
def test_a_chunk_may_be_one_row(name: str, tmp_path: Path) -> None:
    source = FORMATS[name](tables.frame(12), tmp_path)
    frame = tables.in_memory(source)
    chunked = replace(read(source, "y"), chunk_rows=1)
    assert [len(rows.targets) for rows in chunked.chunks()] == [1] * 12
    check_equal(joined(chunked), read(frame[NAMES], frame["y"]))


def test_the_values_of_a_row_do_not_depend_on_its_chunk(source: Any) -> None:
    """Not only their codes: whole numbers stay such beside missing values."""
    chunked = read(source, "y")
    whole = joined(chunked).frame.astype(object)
    for rows in (7, N - 1):
        part = joined(replace(chunked, chunk_rows=rows)).frame.astype(object)
        for name in NAMES:
            alike = [
                (pd.isna(a) and pd.isna(b)) or (type(a) is type(b) and a == b)
                for a, b in zip(whole[name], part[name], strict=True)
            ]
            assert all(alike), name


def test_a_fit_sets_what_a_fit_to_a_data_frame_sets(source: Any) -> None:
    frame = tables.in_memory(source)
    one, two = DPEBMClassifier(domain=LABELS), DPEBMClassifier(domain=LABELS)
    read(source, "y", model=one)
    read(frame[NAMES], frame["y"], model=two)
    assert one.n_features_in_ == two.n_features_in_ == len(NAMES)
    assert one.feature_names_in_.tolist() == two.feature_names_in_.tolist() == NAMES
    assert one.classes_.tolist() == two.classes_.tolist() == ["no", "yes"]
    assert one.classes_.dtype == two.classes_.dtype


@pytest.mark.parametrize(
    ("kind", "y"),
    [(DPEBMClassifier, "y"), (DPEBMPlusClassifier, "y"), (DPEBMRegressor, "z"),
     (DPEBMPlusRegressor, "z")],
)  # fmt: skip
def test_a_model_has_the_bits_of_one_of_rows_in_memory(source: Any, kind: Any, y: str) -> None:
    frame = tables.in_memory(source)
    domain = LABELS if y == "y" else RANGE
    one, two = (kind(domain=domain, n_epochs=2, random_state=0) for _ in range(2))
    one.fit(source, y)
    two.fit(frame[NAMES], frame[y])
    assert one.intercept_ == two.intercept_
    for a, b in zip(one.shape_functions_, two.shape_functions_, strict=True):
        np.testing.assert_array_equal(a, b)
    assert one.ledger_.summary() == two.ledger_.summary()
    np.testing.assert_array_equal(one.predict(frame[NAMES]), two.predict(frame[NAMES]))


@pytest.mark.parametrize("share", [0.02, 0.5, 0.98])
@pytest.mark.parametrize("max_leaves", [2, 4])
def test_a_sound_model_has_these_bits_too_whichever_label_is_rare(
    tmp_path: Path, share: float, max_leaves: int
) -> None:
    """Its noise follows the largest score that a row can have, of either sign."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.random(300), "z": rng.random(300)})
    table["y"] = np.where(rng.random(300) < share, "yes", "no")
    table.to_parquet(tmp_path / "t.parquet")
    domain = Domain((NumericFeature("x", 0, 1), NumericFeature("z", 0, 1)), ("no", "yes"))
    one, two = (
        DPEBMClassifier(
            8.0, domain=domain, sensitivity="sound", composition="joint", n_epochs=30,
            learning_rate=0.3, max_leaves=max_leaves, random_state=0,
        )
        for _ in range(2)
    )  # fmt: skip
    one.fit(tmp_path / "t.parquet", "y")
    two.fit(table[["x", "z"]], table["y"])
    for name in ("shape_functions_", "shape_noise_"):
        for a, b in zip(getattr(one, name), getattr(two, name), strict=True):
            np.testing.assert_array_equal(a, b)
    assert one.ledger_.summary() == two.ledger_.summary()


def test_a_refit_forgets_the_fit_before(tmp_path: Path) -> None:
    model = DPEBMClassifier(domain=LABELS, n_epochs=2).fit(*_written(tmp_path))
    with pytest.raises(ValueError, match="no column 'nowhere', the target"):
        model.fit(tmp_path / "t.parquet", "nowhere")
    assert not {"ledger_", "classes_", "feature_names_in_"} & set(vars(model))


def _written(folder: Path, **changed: Any) -> tuple[Path, str]:
    table = tables.frame(40).assign(**changed)
    table.to_parquet(folder / "t.parquet")
    return folder / "t.parquet", "y"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"score": np.inf}, "Input score contains infinity"),
        ({"y": None}, "Input y contains NaN"),
        ({"y": "perhaps"}, "y must hold the domain's labels 'no' and 'yes' as text, or"),
        ({"y": 7}, "y must hold the domain's labels"),
        ({"count": "many"}, "column 'count' is to hold numbers, .* holds text"),
        ({"count": True}, "column 'count' is to hold numbers, .* holds booleans"),
        ({"count": [[1]] * 40}, "column 'count' is to hold numbers"),
        ({"town": [[1]] * 40}, "column 'town' of the table is to hold categories, but its type is"),
        ({"y": pd.Timestamp("2024-01-01")}, "column 'y' of the table is to hold labels"),
    ],
)  # fmt: skip
def test_what_a_fit_refuses_in_memory_is_refused(
    tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        joined(read(*_written(tmp_path, **changed)))
    for quoted in ("40", "secret", "perhaps", "many"):
        assert quoted not in str(caught.value)


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_too_few_rows_are_refused(tmp_path: Path, rows: int, suffix: str) -> None:
    table = tables.frame(1).iloc[:rows]
    path = FORMATS[suffix](table, tmp_path)
    with pytest.raises(ValueError, match="too few rows: a minimum of 2 sample"):
        joined(read(path, "y"))
    with pytest.raises(ValueError, match="too few rows: a minimum of 2 sample"):
        DPEBMPlusClassifier(domain=LABELS).fit(path, "y")


@pytest.mark.parametrize("column", ["score", "town", "y"])
def test_a_missing_column_is_named(tmp_path: Path, column: str) -> None:
    tables.frame(5).drop(columns=column).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=f"the table has no column {column!r}"):
        read(tmp_path / "t.parquet", "y")


def test_the_target_is_no_feature(tmp_path: Path) -> None:
    path, _ = _written(tmp_path)
    with pytest.raises(ValueError, match="'count' is the target and a feature"):
        read(path, "count")


def test_a_public_domain_and_the_name_of_the_target_are_needed(tmp_path: Path) -> None:
    path, y = _written(tmp_path)
    with pytest.raises(ValueError, match=r"DPEBMClassifier: a table .* needs a public domain"):
        DPEBMClassifier().fit(path, y)
    observed = Domain(FEATURES, ("no", "yes"), observed=("bounds of age",))
    for model in (DPEBMClassifier(domain=observed), DPEBMPlusClassifier(observed=True)):
        with pytest.raises(ValueError, match="needs a public domain"):
            model.fit(path, y)
    with pytest.raises(ValueError, match="y must be the name of its target column, got ndarray"):
        DPEBMClassifier(domain=LABELS).fit(path, np.zeros(40))
    with pytest.raises(ValueError, match="target must be bounds"):
        DPEBMRegressor(domain=LABELS).fit(path, "z")


def test_methods_that_take_rows_in_memory_say_so(tmp_path: Path) -> None:
    path, y = _written(tmp_path)
    refused = "takes rows in memory here.* DP-EBM .* and of DP-EBM"
    fitted = DPEBMClassifier(domain=LABELS, n_epochs=2).fit(path, y)
    for act in (
        lambda: EBMClassifier().fit(path, y),
        lambda: DPBoostClassifier(domain=LABELS).fit(str(path), y),
        lambda: read_training_arrays(DPEBMRegressor(), Table.open(path), y),
        lambda: wrap_training_arrays(path, y),
        lambda: fitted.predict(path),
    ):
        with pytest.raises(ValueError, match=refused):
            act()


def test_rows_in_chunks_are_wrapped(tmp_path: Path) -> None:
    model = DPEBMClassifier(domain=LABELS)
    path, y = _written(tmp_path)
    rows: Private[FitRows] = read_training_rows(model, path, y, LABELS, "binary", in_chunks=True)
    with pytest.raises(PrivateRowsError):
        rows.open()
    assert isinstance(opened(rows), ChunkedRows)
    assert resolve_domain_of(model, rows, "binary") is LABELS


def test_labels_can_be_codes_and_their_type_decides(tmp_path: Path) -> None:
    codes = np.arange(40) % 2
    kinds = ((codes.astype(np.int8), [0, 1], np.int64), (codes == 1, [False, True], np.bool_))
    for y, classes, kind in kinds:
        model = DPEBMClassifier(domain=LABELS)
        rows = read(*_written(tmp_path, y=y), model=model)
        assert model.classes_.tolist() == classes
        assert model.classes_.dtype == kind  # as a model file gives them back
        np.testing.assert_array_equal(joined(rows).targets, codes.astype(np.float32))
    # The second half alone has a missing label, and the first is read without it.
    late = pd.Series(codes, dtype="Int64").where(np.arange(40) < 30, pd.NA)
    rows = replace(read(*_written(tmp_path, y=late)), chunk_rows=10)
    with pytest.raises(ValueError, match="Input y contains NaN"):
        list(rows.chunks())


def test_one_label_is_enough_with_a_public_domain(tmp_path: Path) -> None:
    rows = joined(read(*_written(tmp_path, y="yes")))
    assert rows.targets.tolist() == [1.0] * 40


def test_texts_of_a_csv_are_missing_unless_they_are_categories(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b,c,y\nNA,NA,NA,no\n?,x,1,yes\n,x,,yes\n")
    domain = Domain(
        (
            CategoricalFeature("a", ("NA", "?"), missing=True),
            CategoricalFeature("b", ("x",), missing=True),
            NumericFeature("c", 0, 1, missing=True),
        ),
        ("no", "yes"),
    )
    frame = joined(read(path, "y", domain)).frame
    assert frame["a"].isna().tolist() == [False, False, True]
    assert frame["b"].isna().tolist() == [True, False, False]
    assert frame["c"].isna().tolist() == [True, False, True]


def test_identity_tells_tables_features_and_targets_apart(tmp_path: Path) -> None:
    path, y = _written(tmp_path)
    first = read(path, y).identity
    assert first == read(str(path), y).identity
    assert first != read(path, "z", RANGE).identity
    fewer = Domain(FEATURES[:3], ("no", "yes"))
    assert first != read(path, y, fewer).identity


def test_a_table_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path, y = _written(tmp_path)
    chunks = replace(read(path, y), chunk_rows=10).chunks()
    next(chunks)
    os.utime(path, ns=(1, 1))
    with pytest.raises(TableError, match="changed while it was read"):
        list(chunks)
