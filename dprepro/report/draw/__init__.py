"""Draw curves, shape functions, filters and margins. Matplotlib does it, an extra."""

from dprepro.runtime.extras import needs_extra

# Before any module of this package: each imports it.
with needs_extra("plot", "pictures need Matplotlib"):
    import matplotlib  # noqa: F401
