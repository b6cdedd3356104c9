"""Pins: carry out a placement with slot sharing groups and resources, and verify it."""
