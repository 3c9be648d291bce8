"""Where the private rows of a fit lie (memory, disk, a Dask cluster), and exact sums over them."""
