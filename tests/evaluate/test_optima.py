import json
import logging
from dataclasses import asdict, replace
from pathlib import Path
from threading import Thread

import pytest
from problems import chain, diamond

from streamplace.evaluate.compare import ComparisonRun, compare
from streamplace.evaluate.records import (
    Record,
    _warn,
    cache_answers,
    cache_path,
    cached_answers,
    read_records,
)
from streamplace.model import Cluster, Problem
from streamplace.placers.registry import Budget

GRAPHS = [Problem(graph, Cluster.uniform(3)) for graph in (chain(), diamond())]
COMPARISON = ComparisonRun(("exact",), rates=(2e4,), budget=Budget(seconds=None, evaluations=500))


@pytest.fixture(autouse=True)
def _nothing_told() -> None:
    """Nothing has been told of the cache yet."""
    _warn.cache_clear()


def answered() -> list[Record]:
    """What exact answers."""
    return [record for found in compare(COMPARISON, GRAPHS, jobs=1) for record in found]


def facts(records: list[Record]) -> list[tuple[object, ...]]:
    """What does not depend on how long it took."""
    return [(r.problem, r.value, r.bound, r.devices) for r in records]


@pytest.mark.parametrize(
    "garbage",
    [b"garbage\n", b"\x00\xff\n", b"{}\n", b"[1, 2]\n", b'{"problem": 1}\n', b"\n"],
    ids=["text", "bytes", "empty object", "list", "fields", "blank"],
)
def test_a_line_that_is_no_answer_is_left_out(garbage: bytes) -> None:
    first = answered()
    one, other = cache_path().read_bytes().splitlines(keepends=True)
    cache_path().write_bytes(one + garbage + other + b'{"probl')
    assert answered() == first


@pytest.mark.parametrize(
    "forged",
    [
        {"value": 0.99, "bound": 0.99},
        {"bound": 0.01},
        {"devices": [0]},
        {"devices": [7, 7, 7, 7]},
        {"value": None},
    ],
    ids=["value", "bound", "too few devices", "unknown devices", "no value"],
)
def test_an_answer_that_does_not_hold_is_found_anew(forged: dict[str, object]) -> None:
    """The placement is there to be judged; the last answer of a problem counts afterwards."""
    first = answered()
    rows = [json.loads(line) for line in cache_path().read_text().splitlines()]
    cache_path().write_text("".join(json.dumps({**row, **forged}) + "\n" for row in rows))
    assert facts(answered()) == facts(first)
    again = answered()
    assert again == answered()
    assert facts(again) == facts(first)


def test_a_cache_that_cannot_be_written_is_told_of_once(
    cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = facts(answered())
    cache.rename(cache.with_name("was"))
    cache.write_text("no folder")
    with caplog.at_level(logging.WARNING):
        assert facts(answered()) == facts(answered()) == first
    assert len(caplog.messages) == 1
    assert "XDG_CACHE_HOME" in caplog.messages[0]


def test_a_cache_that_cannot_be_read_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    first = facts(answered())
    cache_path().unlink()
    cache_path().mkdir()
    with caplog.at_level(logging.WARNING):
        assert facts(answered()) == first
    assert "XDG_CACHE_HOME" in caplog.messages[0]


def test_a_user_without_a_home_has_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """As processes in containers that run under a number without a name."""
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", _homeless)
    assert answered()
    assert not cache_path().exists()


def _homeless() -> Path:
    raise RuntimeError("Could not determine home directory.")


def test_answers_added_at_once_are_all_kept() -> None:
    """Beside a line that is no answer."""
    record = answered()[0]
    cache_path().write_text("garbage\n" + json.dumps(asdict(record)) + "\n")

    def add(who: int) -> None:
        for i in range(20):
            cache_answers([replace(record, problem=f"{who}-{i}")])

    writers = [Thread(target=add, args=(who,)) for who in range(4)]
    for writer in writers:
        writer.start()
    cached_answers()
    for writer in writers:
        writer.join()
    assert len({found.problem for found in read_records(cache_path())}) == 81
