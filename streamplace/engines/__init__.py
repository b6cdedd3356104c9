"""Exports to real engines, and control of those that run: one engine, one file or folder."""
