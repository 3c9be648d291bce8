"""Tables as data: what stands in which row and column, and how a field reads."""
