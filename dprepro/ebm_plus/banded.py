"""Positive definite matrices with two bands on either side of the diagonal, in O(B) time.

A matrix A is float64 (3, B): A[0, b] is its diagonal, and A[1, b] and A[2, b] are what row b has
one and two places left of the diagonal; A[1, 0], A[2, 0] and A[2, 1] are not read. Its factors
L D L' have the same form: D is in the first row, and L, which has ones on its diagonal, in the
others.
"""

from __future__ import annotations

from dprepro.compiled import kernel


@kernel(error_model="numpy")
def factor(matrix):  # type: ignore[no-untyped-def]
    """Put the factors L D L' of a matrix in its place."""
    for b in range(1, matrix.shape[1]):
        if b > 1:
            far = matrix[2, b] / matrix[0, b - 2]
            matrix[0, b] -= far * matrix[2, b]
            matrix[1, b] -= matrix[2, b] * matrix[1, b - 1]
            matrix[2, b] = far
        near = matrix[1, b] / matrix[0, b - 1]
        matrix[0, b] -= near * matrix[1, b]
        matrix[1, b] = near


@kernel(error_model="numpy")
def forward(factors, values):  # type: ignore[no-untyped-def]
    """Put L^-1 `values` in the place of `values`, float64 (B,)."""
    for b in range(1, values.size):
        values[b] -= factors[1, b] * values[b - 1]
        if b > 1:
            values[b] -= factors[2, b] * values[b - 2]


@kernel(error_model="numpy")
def backward(factors, values):  # type: ignore[no-untyped-def]
    """Put L'^-1 D^-1 `values` in the place of `values`, float64 (B,)."""
    for b in range(values.size - 1, -1, -1):
        values[b] /= factors[0, b]
        if b + 1 < values.size:
            values[b] -= factors[1, b + 1] * values[b + 1]
        if b + 2 < values.size:
            values[b] -= factors[2, b + 2] * values[b + 2]


@kernel(error_model="numpy")
def diagonal_of_inverse(factors, found):  # type: ignore[no-untyped-def]
    """Fill in the diagonal of A^-1, `found`, float64 (B,).

    With S = A^-1 and the identity I, S = D^-1 L^-1 + (I - L') S. Its diagonal and first band follow
    from the last row on, as L^-1 has nothing above its diagonal (Takahashi, Fagan and Chin 1973).
    """
    last = found.size - 1
    band = 0.0  # S[b + 1, b + 2]
    for b in range(last, -1, -1):
        near = factors[1, b + 1] if b < last else 0.0
        far = factors[2, b + 2] if b + 1 < last else 0.0
        next_one = found[b + 1] if b < last else 0.0
        next_two = found[b + 2] if b + 1 < last else 0.0
        one, two = -near * next_one - far * band, -near * band - far * next_two
        found[b] = 1 / factors[0, b] - near * one - far * two
        band = one
