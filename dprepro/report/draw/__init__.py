"""Draw curves, shape functions, filters and margins."""
