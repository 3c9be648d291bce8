from tests.lab import lab

__all__ = ["lab"]
