"""Networks: rules of contention between transfers."""
