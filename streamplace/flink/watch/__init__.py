"""Watch a running job: move it when its rate changes, and replace lost TaskManagers."""
