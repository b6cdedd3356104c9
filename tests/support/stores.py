"""A store without room, and one with a damaged row."""

import sqlite3
from contextlib import closing
from typing import Any

import pytest

from streamplace.io.store import Store


def fill_disk(patch: pytest.MonkeyPatch) -> None:
    """Let the files of stores not grow any more."""
    connect = sqlite3.connect

    def full(*given: Any, **options: Any) -> sqlite3.Connection:
        database = connect(*given, **options)
        pages = database.execute("PRAGMA page_count").fetchone()[0]
        database.execute(f"PRAGMA max_page_count = {pages}")
        return database

    patch.setattr(sqlite3, "connect", full)


def damage(store: Store, table: str, text: str = "{}") -> None:
    """Replace all rows of a table."""
    with closing(sqlite3.connect(store.path)) as database, database:
        database.execute(f"UPDATE {table} SET document = ?", (text,))
