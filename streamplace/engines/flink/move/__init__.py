"""Move a running job with its state; in the end one copy of it runs."""
