"""Stores and files without room."""

import resource
import sqlite3
from contextlib import contextmanager


def fill_disk(patch):
    """Let the files of stores not grow any more."""
    connect = sqlite3.connect

    def full(*given, **options):
        database = connect(*given, **options)
        pages = database.execute("PRAGMA page_count").fetchone()[0]
        database.execute(f"PRAGMA max_page_count = {pages}")
        return database

    patch.setattr(sqlite3, "connect", full)


@contextmanager
def small_files():
    """Let no file grow beyond ten bytes while the block runs, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
