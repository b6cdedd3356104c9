"""``streamplace flink``: one file per group of its commands."""
