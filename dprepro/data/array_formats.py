"""Bytes to tables: formats that hold nothing but numbers, svmlight, idx and npz."""

from __future__ import annotations

import io
import math
import tokenize
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from dprepro.data.card_parts import Format
from dprepro.data.packed import ARCHIVE_FAULTS, PackedError, unzipped, zip_member
from dprepro.errors import DpreproError


def read_svmlight(
    data: bytes, settings: Format, kinds: Mapping[str, Any], missing: Collection[str] = ()
) -> pa.Table:
    """Return the label, then the features in the order of their indices; missing ones are 0."""
    from sklearn.datasets import load_svmlight_file

    names = settings.columns or []
    if len(names) < 2:
        raise DpreproError(
            "svmlight files name no columns: add `format: {kind: svmlight, header: false, "
            "columns: [label, first feature, ...]}`"
        )
    try:
        features, label = load_svmlight_file(
            io.BytesIO(data), n_features=len(names) - 1, zero_based=False
        )
    except (ValueError, OverflowError) as error:
        raise DpreproError(
            f"not valid svmlight with {len(names) - 1} features: every line is a label, then "
            f"INDEX:VALUE with an INDEX from 1 to {len(names) - 1}, and some line is not"
        ) from error
    return _table(names, [label, *features.toarray().T])


def read_idx(
    data: bytes, settings: Format, kinds: Mapping[str, Any], missing: Collection[str] = ()
) -> pa.Table:
    """Return the bytes as uint8."""
    data = unzipped(data)
    dimensions = data[3] if data[:3] == b"\0\0\x08" and len(data) > 3 else 0
    start = 4 + 4 * dimensions
    if len(data) < start:
        dimensions, start = 0, 4
    shape = [int(size) for size in np.frombuffer(data[4:start], dtype=">i4")]
    if not shape or min(shape) < 1 or len(data) != start + math.prod(shape):
        raise DpreproError(
            "not valid idx: expected a header for unsigned bytes, and as many bytes as it announces"
        )
    values = np.frombuffer(data, dtype=np.uint8, offset=start).reshape(shape[0], -1)
    if dimensions == 1:
        return _table(["class"], values.T)
    return _table([f"pixel{k + 1}" for k in range(values.shape[1])], values.T)


def _table(names: Sequence[str], columns: Iterable[np.ndarray]) -> pa.Table:
    arrays = [pa.array(np.ascontiguousarray(column)) for column in columns]
    return pa.Table.from_arrays(arrays, names=list(names))


def read_npz(
    data: bytes, settings: Format, kinds: Mapping[str, Any], missing: Collection[str] = ()
) -> pa.Table:
    """Return the label y, then the columns of X, of an archive of NumPy with these two arrays."""
    names = settings.columns or []
    if len(names) < 2:
        raise DpreproError(
            "npz files name no columns: add `format: {kind: npz, header: false, columns: "
            "[label, first feature, ...]}`"
        )
    features, label = _arrays_of_npz(data)
    rows = len(label) if label.ndim else 0
    if features.shape != (rows, len(names) - 1) or label.shape not in ((rows,), (rows, 1)):
        raise DpreproError(
            f"not valid npz with {len(names) - 1} features: X must have as many columns, and a row "
            "for each entry of y"
        )
    return _table(names, [label.reshape(rows), *features.T])


def _arrays_of_npz(data: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Return X and y, in the byte order of this machine."""
    fault = DpreproError("not valid npz: expected arrays of numbers X and y")
    try:
        found = [_array(zip_member(data, f"{name}.npy")) for name in ("X", "y")]
    except PackedError:
        raise
    except (DpreproError, ValueError, EOFError, tokenize.TokenError, *ARCHIVE_FAULTS) as error:
        raise fault from error
    if found[0].dtype.kind not in "biuf" or found[1].dtype.kind not in "biufU":
        raise fault
    features, label = (array.astype(array.dtype.newbyteorder("=")) for array in found)
    return features, label


def _array(data: bytes) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy advises to write old files anew
        return np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
