"""What a fit takes of Dask, and what it refuses before anything is computed."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import dask.array as da
import dask.bag
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import dprepro
from dprepro.data.domain import Domain
from dprepro.estimators.inputs import read_training_rows
from dprepro.methods.dp_ebm.ebm import EBMClassifier
from dprepro.methods.dp_ebm.estimator import DPEBMClassifier, DPEBMRegressor
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier
from dprepro.methods.dpboost.estimator import DPBoostClassifier
from dprepro.privacy.private_rows import Private
from dprepro.rows.chunked import CollectionRows, is_collection
from dprepro.rows.cluster import ClusterError, Job, sort_part
from dprepro.rows.readers import TableError
from tests.rows import clustered

TABLE = clustered.frame(60)
FRAME = dd.from_pandas(TABLE, npartitions=3)
ARRAY = da.from_array(TABLE[["x0", "x1"]].to_numpy(), chunks=(20, -1))
LABELS = da.from_array(TABLE["y"].to_numpy(), chunks=20)


def opened(private: Private[Any]) -> Any:
    return private._Private__value  # type: ignore[attr-defined]


def read(X: Any, y: Any, is_frame: bool = True, model: Any = None) -> CollectionRows[Any]:
    domain = clustered.domain("y", is_frame)
    model = DPEBMClassifier(domain=domain) if model is None else model
    rows = opened(read_training_rows(model, X, y, domain, "binary", in_chunks=True))
    assert isinstance(rows, CollectionRows)
    return rows


def test_collections_are_known_without_dask() -> None:
    for given in (FRAME, FRAME["y"], ARRAY, dask.bag.from_sequence([1])):
        assert is_collection(given)
    for given in (TABLE, TABLE["y"].to_numpy(), "y", None, [[1]]):
        assert not is_collection(given)
    code = (
        "import sys, dprepro.methods.dp_ebm, dprepro.methods.dp_ebm_plus, numpy as np;"
        "dprepro.methods.dp_ebm.EBMClassifier(n_epochs=2).fit(np.eye(4), [0, 1, 0, 1]);"
        "print({'dask', 'distributed'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("y", ["y", FRAME["y"]])
def test_partitions_of_a_frame_have_its_rows_and_the_order_of_the_domain(y: Any) -> None:
    rows = read(FRAME, y)
    assert rows.names == clustered.names(True)
    found = [rows.reading(*dask.compute(X, target)) for X, target in rows.partitions]
    whole = pd.concat([part.frame for part in found])
    wanted = FRAME.compute()
    pd.testing.assert_frame_equal(whole, wanted[rows.names])
    np.testing.assert_array_equal(np.concatenate([p.targets for p in found]), wanted["y"])


@pytest.mark.parametrize("columns", [-1, 1])
def test_blocks_of_an_array_have_its_rows(columns: int) -> None:
    rows = read(ARRAY.rechunk({1: columns}), LABELS, False)
    found = [rows.reading(*dask.compute(X, y)) for X, y in rows.partitions]
    whole = np.concatenate([part.frame.to_numpy() for part in found])
    np.testing.assert_array_equal(whole, TABLE[["x0", "x1"]])
    np.testing.assert_array_equal(np.concatenate([p.targets for p in found]), TABLE["y"])


def test_a_value_reads_the_same_whatever_its_partition_holds() -> None:
    """As one type is stated for all, whole numbers are no floats where some are missing."""
    whole = TABLE.assign(c=pd.array(np.arange(60) % 3, dtype="Int64"))
    parts = [whole[:2], whole[:2].assign(c=[1.0, np.nan]), whole[:2].assign(c=["secret", "b"])]
    X = dd.from_map(pickle.loads, [pickle.dumps(part) for part in parts], meta=whole[:0])
    rows = read(X, "y")
    first, second, third = [dask.compute(*pair) for pair in rows.partitions]
    assert [str(value) for value in rows.reading(*first).frame["c"]] == ["0", "1"]
    assert [str(value) for value in rows.reading(*second).frame["c"]] == ["1", "<NA>"]
    with pytest.raises(ValueError, match="column 'c' is stated to be Int64") as caught:
        rows.reading(*third)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda part: part.drop(columns="x1"),
            "'x1' is stated for all of X, but a partition lacks",
        ),
        (lambda part: part.drop(columns="y"), "'y' is stated for all of X, but a partition lacks"),
        (lambda part: pd.concat([part, part[["x1"]]], axis=1), "a partition has several of this"),
    ],
)
def test_a_partition_that_lacks_a_column_is_told_by_name(change: Any, said: str) -> None:
    part = TABLE[["x0", "x1", "c", "y"]][:2]
    rows = read(dd.from_pandas(part, npartitions=1), "y")
    with pytest.raises(TableError, match=said):
        rows.reading(change(part), None)
    job = Job(rows.reading, lambda rows: rows, lambda *_: None, dprepro.__version__)  # type: ignore
    assert said in sort_part(change(part), None, job).text


@pytest.mark.parametrize(
    ("stated", "held", "is_kept"),
    [
        ("int64", [1.0, 2.0], True),
        ("int64", [1.0, 2.5], False),
        ("int64", ["1", "2"], False),
        ("int64", pd.to_datetime(["1970-01-01", "1970-01-02"]), False),
        ("Int64", [1.0, np.nan], True),
        ("bool", [0, 1], True),
        ("bool", [0, 2], False),
        ("int8", [0, 300], False),
        ("float32", [0.5, np.nan], True),
        ("float32", [0.1, 0.5], False),
        ("string", [1, 2], False),
        ("string", ["a", None], True),
        ("int64", pd.Categorical([1, 2]), True),
        ("int64", pd.Categorical(["1", "2"]), False),
    ],
)
def test_a_partition_of_another_type_is_read_only_if_every_value_stays(
    stated: str, held: Any, is_kept: bool
) -> None:
    whole = TABLE.assign(c=pd.array(["0"] * 60 if stated == "string" else [0] * 60, dtype=stated))
    part = whole[:2].drop(columns="c").assign(c=pd.Series(held))
    X = dd.from_map(pickle.loads, [pickle.dumps(part)], meta=whole[:0])
    rows = CollectionRows.of(X, "y", clustered.domain("y").features, lambda X, _: X)
    pair = dask.compute(*rows.partitions[0])
    if is_kept:
        found = rows.reading(*pair)["c"]
        assert found.dtype == whole["c"].dtype
        known = ~found.isna()
        assert known.tolist() == pd.Series(held).notna().tolist()
        assert found[known].tolist() == pd.Series(held)[known].tolist()
    else:
        with pytest.raises(TableError, match=f"column 'c' is stated to be {stated}"):
            rows.reading(*pair)


@pytest.mark.parametrize(
    ("name", "held"),
    [("X", np.array([["1", "2"]])), ("X", np.array([[1j, 2]])), ("X", np.array([["1", 2]], object)),
     ("X", np.array([["1970-01-01", "1970-01-02"]], "M8[D]")), ("y", np.array(["1"]))],
)  # fmt: skip
def test_a_block_of_another_type_is_refused(name: str, held: Any) -> None:
    rows = read(ARRAY, LABELS, False)
    block = {"X": np.array([[0.5, 1]]), "y": np.array([1])}
    assert rows.reading(*block.values()).frame.to_numpy().tolist() == [[0.5, 1]]
    with pytest.raises(TableError, match=f"{name} is stated to be .*, but a block holds"):
        rows.reading(*(block | {name: held}).values())


def test_no_seed_travels_to_the_workers() -> None:
    """Whoever has the seed can subtract the noise."""
    seed = 987_654_321
    domain = clustered.domain("y")
    rows = read(FRAME, "y", model=DPEBMClassifier(random_state=seed, domain=domain))
    with_seed = seed.to_bytes(4, "little")
    assert with_seed in pickle.dumps(DPEBMClassifier(random_state=seed))
    assert with_seed not in pickle.dumps(rows.reading)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (FRAME, "nowhere", "the table has no column 'nowhere', the target"),
        (FRAME, "x1", "'x1' is the target and a feature of the domain"),
        (FRAME.drop(columns="x0"), "y", "the table has no column 'x0', the feature of the domain"),
        (FRAME, FRAME["y"].repartition(npartitions=2), "X and y must have the same partitions"),
        (FRAME, dd.from_pandas(TABLE["y"][::-1].reset_index(drop=True), chunksize=15),
         "X and y must have the same partitions"),
        (FRAME, TABLE["y"], "y must be a Dask Series of the same partitions, or the name"),
        (FRAME, LABELS, "y must be a Dask Series .* got Array"),
        (ARRAY, "y", "X is a Dask Array, so y must be a Dask Array, too, got str"),
        (ARRAY, TABLE["y"].to_numpy(), "so y must be a Dask Array, too, got ndarray"),
        (ARRAY, LABELS.rechunk(30), "X and y must be chunked alike along the rows"),
        (ARRAY, LABELS[:40], "X and y must be chunked alike along the rows"),
        (ARRAY[:, 0], LABELS, "X must have 2 dimensions and y 1, got 1 and 1"),
        (ARRAY.astype(str), LABELS, "an array must hold numbers"),
        (FRAME["x0"], FRAME["y"], "X must be a Dask DataFrame or a Dask Array, got Series of Dask"),
        (dask.bag.from_sequence([1]), "y", "X must be a Dask DataFrame or a Dask Array, got Bag"),
    ],
)  # fmt: skip
def test_other_collections_are_refused(X: Any, y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(X, y)


def test_arrays_of_unknown_length_need_as_many_chunks() -> None:
    X, y = FRAME[["x0", "x1"]].to_dask_array(), FRAME["y"].to_dask_array()
    assert len(read(X, y, False).partitions) == 3
    with pytest.raises(ValueError, match="X and y must be chunked alike"):
        read(X, LABELS.rechunk(60), False)


def test_a_public_domain_and_as_many_features_are_needed() -> None:
    observed = Domain(clustered.FEATURES, ("0", "1"), observed=("bounds of x0",))
    for model in (DPEBMClassifier(), DPEBMClassifier(domain=observed),
                  DPEBMPlusClassifier(observed=True)):  # fmt: skip
        with pytest.raises(ValueError, match=r"a Dask collection needs a public domain"):
            model.fit(FRAME, "y")
    with pytest.raises(ValueError, match="target must be bounds"):
        DPEBMRegressor(domain=clustered.domain("y")).fit(FRAME, "z")
    with pytest.raises(ValueError, match="X has 2 columns but the domain describes 3 features"):
        DPEBMClassifier(domain=clustered.domain("y")).fit(ARRAY, LABELS)


def test_without_a_client_a_fit_says_how_to_start_one() -> None:
    model = DPEBMPlusClassifier(domain=clustered.domain("y"))
    with pytest.raises(ClusterError, match=r"no client of a Dask cluster.*client = Client\(\)"):
        model.fit(FRAME, "y")


def test_methods_that_take_rows_in_memory_say_so() -> None:
    domain = clustered.domain("y")
    fitted = DPEBMClassifier(domain=domain, n_epochs=2).fit(TABLE[clustered.names(True)], TABLE.y)
    for act in (
        lambda: EBMClassifier().fit(FRAME, FRAME["y"]),
        lambda: DPBoostClassifier(domain=domain).fit(FRAME, FRAME["y"]),
        lambda: fitted.predict(FRAME),
    ):
        with pytest.raises(ValueError, match=r"takes rows in memory here.* got DataFrame of Dask"):
            act()
