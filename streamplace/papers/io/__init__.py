"""Readers of research collections and of the models in them; one format, one file."""
