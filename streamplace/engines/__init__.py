"""Export to and import from real engines: one engine, one file or folder."""
