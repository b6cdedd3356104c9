"""Reports as text, tables and HTML: what is printed, and shown in notebooks."""
