"""The documents are executed: each block of every page, in order."""
