"""Where the rows of a fit lie, and how a query is summed over them."""
