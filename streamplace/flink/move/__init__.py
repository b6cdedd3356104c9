"""Moves of running jobs with their state, after which one copy of the job runs."""
