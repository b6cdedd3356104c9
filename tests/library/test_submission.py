"""Submitting: only what is better is stored, and a kill at any moment never makes it worse."""

import json
import os
import signal
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from streamplace.errors import FormatError, StreamplaceError
from streamplace.library import check_entry, check_files, open_library, submit

ENTRY = ("random-00", "throughput")


def weaker_library(folder: Path) -> Path:
    """Put everything on one device; return the file of the better solution."""
    file = folder / "random-00/throughput.solution.json"
    best = folder.parent / "mine.json"
    best.write_bytes(file.read_bytes())
    document = json.loads(file.read_text())
    document["place"] = [0] * len(document["place"])
    file.write_text(json.dumps(document))
    change_line(folder, value=single_value(folder), closed=False, proof_seconds=None)
    return best


def single_value(folder: Path) -> float:
    from streamplace.objectives.registry import OBJECTIVES

    problem = open_library(folder).problem("random-00")
    placement = problem.placement([0] * problem.n_operators)
    return float(OBJECTIVES["throughput"].value(problem, placement))


def change_line(folder: Path, **fields: Any) -> None:
    lines = [json.loads(line) for line in (folder / "best.jsonl").read_text().splitlines()]
    for line in lines:
        if (line["instance"], line["objective"]) == ENTRY:
            line |= fields
    (folder / "best.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def assert_consistent(folder: Path) -> None:
    library = open_library(folder)
    result = check_entry(library, library.entry(*ENTRY))
    assert result.accepted, result.text
    for name, digest in library.manifest.sha256.items():
        if name.startswith("random-00/throughput.solution"):
            assert sha256((folder / name).read_bytes()).hexdigest() == digest


def test_a_better_solution_is_stored_and_nothing_else_changes(folder: Path) -> None:
    best = weaker_library(folder)
    before = files_of(folder)
    result = submit(best, instance="random-00", by="a test", seconds=2.0, library=folder)
    assert result.improved
    assert result.entry.value == pytest.approx(0.8389919684749)
    assert (result.entry.closed, result.entry.by, result.entry.seconds) == (True, "a test", 2.0)
    assert result.entry.date == datetime.now(UTC).date().isoformat()
    assert result.entry.proof_seconds is not None
    assert_consistent(folder)
    after = files_of(folder)
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == {"best.jsonl", "manifest.json", "random-00/throughput.solution.json"}


def test_what_is_not_better_changes_nothing(folder: Path) -> None:
    before = files_of(folder)
    for name in ("throughput.solution.json", "throughput.certificate.json"):
        assert not submit(
            folder / "random-00" / name, instance="random-00", library=folder
        ).improved
    assert files_of(folder) == before


def test_a_tighter_bound_is_stored(folder: Path) -> None:
    file = folder / "random-00/throughput.certificate.json"
    mine = folder.parent / "proof.json"
    mine.write_bytes(file.read_bytes())
    trivial = {"objective": "throughput", "bound": 1, "proof": {}}
    file.write_text(json.dumps(trivial))
    change_line(folder, bound=1.0, proof="trivial", closed=False, proof_seconds=None)
    result = submit(mine, instance="random-00", library=folder)
    assert result.improved
    assert (result.before.size, result.entry.proof, result.entry.closed) == ("open", "search", True)
    assert result.entry.proof_seconds is not None
    assert result.entry.size != "open"
    assert_consistent(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"place": [0]}, "the checker refuses it: solution: a list has 1 entries, not 6"),
        ({"place": [-1] * 6}, "no whole number in its range"),
        ({"objective": "speed"}, "objective is 'speed'"),
        ({"graph": "nobody"}, "the library has no instance 'nobody'"),
    ],
)
def test_a_wrong_solution_is_refused(folder: Path, change: dict[str, Any], message: str) -> None:
    document = json.loads((folder / "random-00/throughput.solution.json").read_text())
    mine = folder.parent / "mine.json"
    mine.write_text(json.dumps(document | {"graph": "random-00"} | change))
    before = files_of(folder)
    with pytest.raises(StreamplaceError, match=message):
        submit(mine, library=folder)
    assert files_of(folder) == before


def test_only_one_process_submits_at_a_time(folder: Path) -> None:
    from streamplace.io.files import claim_folder

    with (
        claim_folder(folder, "submitting to it"),
        pytest.raises(FormatError, match="another process is submitting"),
    ):
        submit(
            folder / "random-pass-00/makespan.solution.json",
            instance="random-pass-00",
            library=folder,
        )


def killed_at(step: int, action: Callable[[], object]) -> bool:
    """Whether an action was killed just before it replaced or removed its file of that number."""
    child = os.fork()
    if not child:
        count, replace, unlink = 0, Path.replace, Path.unlink

        def counting(function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*arguments: Any, **options: Any) -> Any:
                nonlocal count
                count += 1
                if count == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                return function(*arguments, **options)

            return call

        Path.replace, Path.unlink = counting(replace), counting(unlink)  # type: ignore[method-assign]
        try:
            action()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


@pytest.mark.slow
def test_a_kill_never_makes_the_library_worse(folder: Path) -> None:
    """Whenever it comes; repeating the submission completes it."""
    best = weaker_library(folder)
    start = files_of(folder)
    old = open_library(folder).entry(*ENTRY).value
    step, kills = 0, 0
    while True:
        step += 1
        for name, content in start.items():
            (folder / name).write_bytes(content)
        if not killed_at(step, lambda: submit(best, instance="random-00", library=folder)):
            break
        kills += 1
        library = open_library(folder)
        result = check_files(*library.files(library.entry(*ENTRY))[:2])
        assert result.value * (1 + 1e-11) >= library.entry(*ENTRY).value >= old
        submit(best, instance="random-00", library=folder)
        assert open_library(folder).entry(*ENTRY).value > old
        assert_consistent(folder)
    assert kills >= 3
    assert_consistent(folder)
