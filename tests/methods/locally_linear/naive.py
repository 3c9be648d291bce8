"""The model as the paper writes it, one row at a time in float64: what the fast code must equal."""

import numpy as np


def inner(x, R):
    """h_m = (R_m x, 1), or (x, 1)."""
    return [np.append(x if R is None else R[m] @ x, 1.0) for m in range(1 if R is None else len(R))]


def scores(x, theta, R, beta):
    """z (M, K), s (M, K), f (K,) and p (K,)."""
    h = inner(x, R)
    z = np.array([theta[m] @ h[m if R is not None else 0] for m in range(len(theta))])
    s = np.exp(beta * z)
    s /= s.sum(axis=0)
    f = (s * z).sum(axis=0)
    p = np.exp(f - f.max())
    return z, s, f, p / p.sum()


def loss(x, label, theta, R, beta):
    return -np.log(scores(x, theta, R, beta)[3][label])


def gradient(x, label, theta, R, beta, step=1e-6):
    """dL/dtheta by central differences."""
    found = np.empty_like(theta)
    for index in np.ndindex(theta.shape):
        moved = [theta.copy(), theta.copy()]
        moved[0][index] += step
        moved[1][index] -= step
        up, down = (loss(x, label, other, R, beta) for other in moved)
        found[index] = (up - down) / (2 * step)
    return found


def clipped_sum(X, labels, theta, R, beta, clip):
    """The sum of the rows' gradients, each scaled to a norm of at most `clip`; and the norms."""
    rows = [gradient(x, y, theta, R, beta) for x, y in zip(X, labels, strict=True)]
    norms = np.array([np.linalg.norm(row) for row in rows])
    return sum(
        row * min(1.0, clip / norm) for row, norm in zip(rows, norms, strict=True)
    ), norms  # fmt: skip
