"""Teaching: a model trained on problems, into a folder; good answers to learn from, and a curve."""
