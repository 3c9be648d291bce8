"""Algorithm 2 of Nori et al. 2021 (DP-EBM), to be read; the kernel is tested against it.

Comments have the paper's line numbers. What the paper draws inside the loop, cuts and noise, is
given here, so that the kernel can be run with the same.
"""

from __future__ import annotations

import numpy as np

from dprepro.methods.dp_ebm.losses import Loss


def boost(
    codes: np.ndarray,
    targets: np.ndarray,
    cuts: np.ndarray,
    noise: np.ndarray,
    counts: np.ndarray,
    n_bins: np.ndarray,
    learning_rate: float,
    loss: Loss,
) -> np.ndarray:
    """Return the functions f_k, float64 (K, B), after all steps: lines 4 to 28.

    Arguments are those of `dprepro.methods.dp_ebm.kernel.boost`, in real numbers where it has whole
    ones: targets float64 (n,) in the unit of scores, and the noise itself, float64 (T, L). `loss`
    stands for the kernel's start, logistic, bound and adaptive.
    """
    shapes = np.zeros(counts.shape)  # line 9: f_k = [0, ..., 0]
    scores = np.full(targets.size, loss.start)
    residuals = loss.residuals(targets, scores)  # line 5, less the start
    for step in range(len(cuts)):  # lines 11 to 13: epoch by epoch, feature by feature
        k = step % len(codes)
        n_leaves = min(noise.shape[1], int(n_bins[k]))
        borders = [0, *(int(cut) for cut in cuts[step, : n_leaves - 1]), int(n_bins[k])]  # line 14
        for leaf in range(n_leaves):  # line 15: S_l holds the bins from start to stop
            start, stop = borders[leaf], borders[leaf + 1]
            in_leaf = (codes[k] >= start) & (codes[k] < stop)
            total = learning_rate * residuals[in_leaf].sum()  # line 16: T
            noisy = total + noise[step, leaf]  # line 17: plus N(0, (sigma eta R)^2)
            count = counts[k, start:stop].sum()
            mean = noisy / count if count > 0 else 0.0  # line 18: mu
            shapes[k, start:stop] += mean  # lines 19 to 22: f_k(b) is released
        # Lines 24 to 26. For labels the residual is y - sigmoid(F), as in the authors' library.
        scores = loss.start + sum(shapes[j, codes[j]] for j in range(len(codes)))
        residuals = loss.residuals(targets, scores)
    return shapes
