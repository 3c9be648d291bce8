"""Additive models: bins, shape functions, editing, files."""
