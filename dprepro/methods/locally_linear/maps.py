"""The model: linear maps weighted by a softmax, and a row's gradient in closed form.

Shapes: n rows, D features, M maps a class, K classes, D' projected features. Equations are those of
Harder, Bauer, Park, "Interpretable and Differentially Private Predictions" (AAAI 2020). With
h_m = (R_m x, 1), or (x, 1) without projections, and z_mk = <theta_mk, h_m>:

    s_mk = softmax over m of beta z_mk       (5)
    f_k  = sum_m s_mk z_mk                   (3)
    p    = softmax over k of f               (7)
    dL/dtheta_mk = d_mk h_m,   d_mk = (p_k - [y = k]) s_mk (1 + beta (z_mk - f_k))

so that the squared norm of a row's gradient is sum_m |h_m|^2 sum_k d_mk^2: gradients of single rows
are never formed.
"""

from __future__ import annotations

import math

import numpy as np

from dprepro.runtime.kernels import kernel

_ROWS = 8192
_MARGIN = 1e-4
"""By how much a clipped norm stays below its bound: more than float32 rounds off."""

_ROUNDING = 2.5e-7
"""What float32 rounds off a projected row, in units of |x| |R_m|: above what products here lose."""

_ORDINARY = (1e-20, 1e18)
"""Squared norms, of gradients and of rows, of which float32 loses no part by under- or overflow."""

LARGEST_INPUT = 100.0
"""Inputs, after normalisation, are cut off here and at its negative: a public constant."""

NO_CLIP = 1e30
"""A norm that no gradient has; the kernel's arithmetic knows no infinity."""

INNER_SD = math.sqrt(0.5)
"""Standard deviation of the projections' entries in the authors' code."""


def draw_projections(
    generator: np.random.Generator, n_maps: int, n_projected: int, n_features: int, sd: float
) -> np.ndarray:
    """Draw R, float32 (M, D', D), entries N(0, sd^2). Reads no data."""
    shape = (n_maps, n_projected, n_features)
    return generator.standard_normal(shape, dtype=np.float32) * np.float32(sd)


def draw_parameters(
    generator: np.random.Generator, n_maps: int, n_classes: int, width: int, projected: bool
) -> np.ndarray:
    """Draw the start of theta, float32 (M, K, width + 1), the offset last. Reads no data.

    Uniform within 1/sqrt(fan), where the fan is K (width + 1) with projections and K M without,
    as it comes out in the authors' code.
    """
    fan = n_classes * (width + 1 if projected else n_maps)
    shape = (n_maps, n_classes, width + 1)
    bound = np.float32(1 / math.sqrt(fan))
    return (generator.random(shape, dtype=np.float32) * 2 - 1) * bound


def filters_of(theta: np.ndarray, projections: np.ndarray | None) -> np.ndarray:
    """Return w = theta R, float32 (M, K, D), without the offsets."""
    inner = theta[..., :-1]
    return np.ascontiguousarray(inner) if projections is None else np.matmul(inner, projections)


def inner_gradient(gradient: np.ndarray, projections: np.ndarray | None) -> np.ndarray:
    """Return dL/dtheta without offsets, (M, K, D'), from dL/dw, (M, K, D)."""
    if projections is None:
        return gradient
    return np.matmul(gradient, projections.transpose(0, 2, 1))


def scores_of(X: np.ndarray, filters: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return z, float32 (n, M, K), of X (n, D), filters (M, K, D) and offsets (M, K): eq. (4)."""
    n_maps, n_classes, n_features = filters.shape
    scores = X @ filters.reshape(-1, n_features).T
    scores += offsets.reshape(-1)
    return scores.reshape(-1, n_maps, n_classes)


def squared_norms(X: np.ndarray, projections: np.ndarray | None) -> np.ndarray:
    """Return |h_m|^2 of each row, float32 (n, M), or (n, 1) where there are no projections.

    Never less than the square of what rounding may add to a gradient over `_MARGIN`: a row that R_m
    takes to almost nothing leaves rounding behind all the same, and must not pass for shorter.
    """
    lengths = np.einsum("ij,ij->i", X, X)
    if projections is None:
        return 1 + lengths[:, None]
    norms = np.empty((len(X), len(projections)), dtype=np.float32)
    spans = np.einsum("mij,mij->m", projections, projections)
    least = np.float32((_ROUNDING / _MARGIN) ** 2) * lengths[:, None] * spans
    for start in range(0, len(X), _ROWS):
        rows = slice(start, start + _ROWS)
        for m, matrix in enumerate(projections):
            inner = X[rows] @ matrix.T
            norms[rows, m] = 1 + np.einsum("ij,ij->i", inner, inner)
    return np.maximum(norms, least, out=norms)


def clipped_sum(
    X: np.ndarray,
    labels: np.ndarray,
    norms: np.ndarray,
    theta: np.ndarray,
    projections: np.ndarray | None,
    beta: float,
    clip: float,
) -> np.ndarray:
    """Return the sum of the rows' gradients, each clipped: float32 (M, K, D' + 1), the offset last.

    Inputs are never projected: theta is carried to the features (w = theta R) and the gradient
    back, which costs M K D D' instead of M D D' for each row.

    Parameters
    ----------
    X, labels
        Float32 (n, D) and codes, int64 (n,).
    norms
        Of the same rows; see `squared_norms`. Not used where `clip` is infinite.
    theta
        Float32 (M, K, D' + 1), the offset last.
    projections
        R, float32 (M, D', D), or None where D' = D.
    clip
        See `score_gradients`; it may be infinite.
    """
    filters = filters_of(theta, projections)
    scores = scores_of(X, filters, theta[..., -1])
    score_gradients(scores, labels, beta, norms, min(clip, NO_CLIP))
    flat = scores.reshape(len(X), theta.shape[0] * theta.shape[1])  # a sample may be empty
    gradient = np.empty_like(theta)
    gradient[..., :-1] = inner_gradient((flat.T @ X).reshape(filters.shape), projections)
    gradient[..., -1] = flat.sum(axis=0).reshape(theta.shape[:2])
    return gradient


@kernel("(float32[:, :, ::1], int64[::1], float64, float32[:, ::1], float64)", error_model="numpy")
def score_gradients(
    scores: np.ndarray, labels: np.ndarray, beta: float, norms: np.ndarray, clip: float
) -> None:
    """Put c d in place of z: the gradient with respect to each score, clipped row by row.

    Parameters
    ----------
    scores
        z, float32 (n, M, K).
    labels
        Codes, int64 (n,).
    norms
        |h_m|^2, float32 (n, M) or (n, 1).
    clip
        Largest norm C of a row's gradient with respect to theta; `NO_CLIP` leaves it as it is.
        c = min(1, C / |gradient|), a little less for what float32 rounds off; 0 for a row whose
        scores or norm are not finite.
    """
    n, n_maps, n_classes = scores.shape
    b = np.float32(beta)
    limit = (1 - _MARGIN) * clip
    weights = np.empty((n_maps, n_classes), dtype=np.float32)
    highest = np.empty(n_classes, dtype=np.float32)
    total = np.empty(n_classes, dtype=np.float32)
    f = np.empty(n_classes, dtype=np.float32)
    for i in range(n):
        z = scores[i]
        _weigh(z, b, weights, highest, total, f)
        _softmax(f, highest)
        highest[labels[i]] -= np.float32(1)
        squared = np.float32(0)
        for m in range(n_maps):
            of_map = np.float32(0)
            for k in range(n_classes):
                d = highest[k] * weights[m, k] * (np.float32(1) + b * (z[m, k] - f[k]))
                z[m, k] = d
                of_map += d * d
            squared += of_map * norms[i, m if norms.shape[1] > 1 else 0]
        low, high = _ORDINARY
        if low <= squared <= high and norms[i].max() <= high:
            norm = math.sqrt(squared)
        else:
            norm = math.sqrt(_squared_norm(z, norms[i]))
        if norm <= limit:
            continue
        if not math.isfinite(norm):
            z[:] = 0
            continue
        factor = np.float32(limit / norm)
        for m in range(n_maps):
            for k in range(n_classes):
                z[m, k] *= factor


@kernel(error_model="numpy")
def _squared_norm(d: np.ndarray, norms: np.ndarray) -> float:
    """Return sum_m |h_m|^2 sum_k d_mk^2 in float64, of d (M, K) and norms (M,) or (1,)."""
    squared = 0.0
    for m in range(d.shape[0]):
        of_map = 0.0
        for k in range(d.shape[1]):
            of_map += np.float64(d[m, k]) * np.float64(d[m, k])
        squared += of_map * np.float64(norms[m if norms.size > 1 else 0])
    return squared


@kernel("(float32[:, :, ::1], float64)", error_model="numpy")
def class_scores(scores: np.ndarray, beta: float) -> tuple[np.ndarray, np.ndarray]:
    """Return s, float32 (n, M, K), and f, float32 (n, K), of z (n, M, K): eqs. (5) and (3)."""
    n, n_maps, n_classes = scores.shape
    weights = np.empty((n, n_maps, n_classes), dtype=np.float32)
    f = np.empty((n, n_classes), dtype=np.float32)
    highest = np.empty(n_classes, dtype=np.float32)
    total = np.empty(n_classes, dtype=np.float32)
    for i in range(n):
        _weigh(scores[i], np.float32(beta), weights[i], highest, total, f[i])
    return weights, f


@kernel(error_model="numpy")
def _weigh(
    z: np.ndarray,
    beta: np.float32,
    weights: np.ndarray,
    highest: np.ndarray,
    total: np.ndarray,
    f: np.ndarray,
) -> None:
    """Fill `weights` with s and `f` with f of one row, z (M, K); the others are work space."""
    n_maps, n_classes = z.shape
    for k in range(n_classes):
        highest[k] = z[0, k]
        total[k] = np.float32(0)
        f[k] = np.float32(0)
    for m in range(1, n_maps):
        for k in range(n_classes):
            highest[k] = max(highest[k], z[m, k])
    for m in range(n_maps):
        for k in range(n_classes):
            weight = np.exp(beta * (z[m, k] - highest[k]))
            weights[m, k] = weight
            total[k] += weight
            f[k] += weight * z[m, k]
    for k in range(n_classes):
        f[k] /= total[k]
        total[k] = np.float32(1) / total[k]
    for m in range(n_maps):
        for k in range(n_classes):
            weights[m, k] *= total[k]


@kernel(error_model="numpy")
def _softmax(f: np.ndarray, p: np.ndarray) -> None:
    """Fill p with softmax(f), both (K,): eq. (7)."""
    highest = f[0]
    for k in range(1, f.size):
        highest = max(highest, f[k])
    total = np.float32(0)
    for k in range(f.size):
        p[k] = np.exp(f[k] - highest)
        total += p[k]
    for k in range(f.size):
        p[k] /= total
