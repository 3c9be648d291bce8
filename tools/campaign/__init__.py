"""Faults, one after the other, and whether anything is lost: `make campaign`."""
