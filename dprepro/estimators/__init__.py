"""What all estimators share: how they read rows, and what may be asked of them."""
