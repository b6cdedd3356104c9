"""Watch a placed job, and replace devices that are lost."""
