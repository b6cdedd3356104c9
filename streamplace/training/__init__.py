"""Training runs, into a folder; how a model learns is in `learner.py` of the model."""
