"""The page of one model: its functions, its predictions, its guarantee, and a way to edit it."""
