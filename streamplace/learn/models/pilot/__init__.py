"""Pilot: a policy that places operators one by one, seeing what every device already carries."""
