"""The toy DP-EBM reads x exactly."""

from dprepro.audit.pairs import another_x

CASES = {"toy-dp-ebm": another_x}
