"""Training runs: a model trained on problems, into a folder, with its learning curve."""
