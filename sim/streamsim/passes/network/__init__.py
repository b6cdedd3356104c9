"""Networks: rules of contention between transfers, one file per rule."""
