"""Sums of rows that are exact: whole numbers of a public grid, whatever the order of the rows.

A float32 sum rounds with every addition by as much as it has grown: a row more or less then moves
it by more than the row's own part, at 10^7 rows by twice as much. So a row's part is made a whole
number first, by what is public and by what the row itself holds: r 2^g, truncated towards zero.
|part| <= |r| 2^g then, so that no part exceeds what is charged for, and sums of whole numbers are
exact: a row more or less moves them by its own part, to the last bit.

Two rules keep it so:

* What is computed for a row must not depend on where the row stands. Under "fastmath" LLVM divides
  by reciprocal estimates in the vectorised body of a loop, but not in what is left over at its end.
  Loops that compute a row's part are compiled without; they vectorise as they are, and give the
  same bits with SSE2, AVX2 and AVX-512.
* int32 sums are emptied before they can overflow: `BLOCK_ROWS` parts of at most `LARGEST`. The
  int64 sums over blocks are exact up to 8 * 10^12 rows.
"""

LARGEST = 2**20
"""1 in units of DP-EBM's sums: the parts of rows are whole numbers from -LARGEST to LARGEST."""

BLOCK_ROWS = 1984
"""Rows a block. As many parts of size `LARGEST` stay below 2^31; a multiple of 64, which is what
loops are unrolled to."""
