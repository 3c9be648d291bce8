"""One file a method: the pairs of tables that are audited, and the adversary who is told all."""
