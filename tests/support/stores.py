"""A store without room."""

import sqlite3


def fill_disk(patch):
    """Let the files of stores not grow any more."""
    connect = sqlite3.connect

    def full(*given, **options):
        database = connect(*given, **options)
        pages = database.execute("PRAGMA page_count").fetchone()[0]
        database.execute(f"PRAGMA max_page_count = {pages}")
        return database

    patch.setattr(sqlite3, "connect", full)
