"""Programs: jars, the identity of their operators, and how they are submitted."""
