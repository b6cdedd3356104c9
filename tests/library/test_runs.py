"""Runs of placers and programs: values, failures, resumption, and the table made of them."""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from streamplace.errors import SettingError
from streamplace.library import LibraryRun, open_library, submit, table
from streamplace.library import run as run_methods
from streamplace.library.folder import Library, ObjectiveName
from streamplace.library.runs import read_runs
from streamplace.library.tables import as_markdown, current_runs, gap_between, summaries

PROGRAM = """
import json, sys, time
way, problem, answer = sys.argv[1:4]
document = json.load(open(problem))
devices = [device["name"] for device in document["cluster"]["devices"]]
assignment = {operator["name"]: devices[0] for operator in document["graph"]["operators"]}
if way == "illegal":
    assignment[next(iter(assignment))] = "nowhere"
if way == "failed":
    sys.exit("no idea")
if way == "memory":
    x = [bytearray(2**20) for _ in range(2**12)]
if way != "silent":
    json.dump({"assignment": assignment}, open(answer, "w"))
while way == "late":
    time.sleep(60)
if way == "garbage":
    open(answer, "w").write("{")
"""


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str], str]:
    """Command of a program that behaves in some way."""
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)

    def command(way: str) -> str:
        return f"{way}={sys.executable} -S {file} {way} {{problem}} {{answer}}"

    return command


@pytest.mark.parametrize(
    ("way", "status", "error"),
    [
        ("single", "answered", None),
        ("illegal", "illegal", "'nowhere'"),
        ("failed", "failed", "no idea"),
        ("silent", "failed", "it wrote no answer"),
        ("garbage", "illegal", "not valid JSON"),
    ],
)
def test_a_program_is_judged_by_its_answer(
    folder: Path, program: Callable[[str], str], way: str, status: str, error: str | None
) -> None:
    (record,) = run_methods(
        commands=[program(way)], instances=["random-00"], objective="throughput"
    )
    assert (record.method, record.status) == (way, status)
    assert (record.value is not None) == (status == "answered")
    assert error is None or (record.error is not None and error in record.error)


def test_a_program_that_exceeds_its_memory_is_ended(
    folder: Path, program: Callable[[str], str]
) -> None:
    (record,) = run_methods(commands=[program("memory")], instances=["giph-11"], memory=2**27)
    assert record.status == "failed"
    assert record.memory <= 2**27 + 2**24


def test_an_answer_counts_that_was_written_in_time(
    folder: Path, program: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamplace.library.runs.GRACE_S", 0.0)
    (record,) = run_methods(
        commands=[program("late")], instances=["random-pass-00"], objective="makespan", seconds=0.2
    )
    assert record.status == "answered"


def test_results_are_resumed_and_answers_can_be_submitted(
    folder: Path, program: Callable[[str], str], tmp_path: Path
) -> None:
    out, answers = tmp_path / "results.jsonl", tmp_path / "answers"
    instances = ["random-00", "random-pass-00"]
    options = {"instances": instances, "out": out, "solutions": answers}
    first = run_methods(commands=[program("single")], **options)
    assert len(first) == 2
    with out.open("a") as file:
        file.write('{"instance": "rand')  # what a kill leaves
    again = run_methods(["heft"], [program("single")], objective="makespan", **options)
    assert again[1] == next(record for record in first if record.objective == "makespan")
    assert [record.method for record in read_runs(out)] == ["single", "single", "heft"]
    file = answers / "random-pass-00.makespan.heft.json"
    result = submit(file, library=folder)
    value = json.loads(file.read_text())["value"]
    assert result.improved == (value < result.before.value * (1 - 1e-9))


def test_runs_of_another_command_or_limit_are_not_taken_for_those_that_are_asked_for(
    folder: Path, program: Callable[[str], str], tmp_path: Path
) -> None:
    """And answers that were not kept are made again where they are wanted."""
    out, answers = tmp_path / "results.jsonl", tmp_path / "answers"
    options = {"instances": ["random-00"], "objective": "throughput", "out": out}
    command = program("single")
    run_methods(commands=[command], **options)
    name, _, template = command.partition("=")
    with pytest.raises(SettingError, match=rf"runs of '{name}' by the command .*NAME=COMMAND"):
        run_methods(commands=[f"{name}={template} --more"], **options)
    with pytest.raises(SettingError, match=r"with another memory limit, .*; give that, or another"):
        run_methods(commands=[command], memory=2**30, **options)
    run_methods(commands=[command], solutions=answers, **options)
    assert [file.name for file in answers.iterdir()] == [f"random-00.throughput.{name}.json"]


def test_a_better_answer_is_kept(
    folder: Path, program: Callable[[str], str], tmp_path: Path
) -> None:
    """Even if a method finds a worse one in more time."""
    file = tmp_path / "random-00.throughput.single.json"
    options = {"instances": ["random-00"], "objective": "throughput", "solutions": tmp_path}
    for present in (0.0, 1.0):
        file.write_text(json.dumps({"value": present}))
        (record,) = run_methods(commands=[program("single")], **options)
        assert json.loads(file.read_text())["value"] == max(present, record.value)


@pytest.mark.slow
def test_the_programs_of_the_benchmark_answer(folder: Path) -> None:
    """Those whose packages streamplace itself needs; the model of OR-tools finds the best."""
    programs = Path(__file__).parents[2] / "benchmarks/library_programs"
    commands = [
        f"metis={sys.executable} {programs}/partition.py metis {{problem}} {{answer}}",
        f"cpsat={sys.executable} {programs}/cpsat.py {{objective}} {{problem}} {{answer}}",
    ]
    library = open_library(folder)
    for record in run_methods(commands=commands, seconds=2):
        assert record.status == "answered", record.error
        entry = library.entry(record.instance, record.objective)
        if record.method == "cpsat":
            assert gap_between(entry, record.value, entry.value) < 1e-4


def a_run(library: Library, instance: str, objective: ObjectiveName, **change: Any) -> LibraryRun:
    """A run of a method on an instance of the library."""
    digest = library.digest(instance)
    run = LibraryRun(instance, objective, digest, "mine", 1.0, 0, "answered", 0.0, 0.5, 0.5, 1)
    return replace(run, **change)


def test_means_are_those_of_the_definition(folder: Path) -> None:
    """Two answers of half and of all of the best value, and one run without an answer."""
    library = open_library(folder)
    rate, time = (
        library.entry("random-00", "throughput"),
        library.entry("random-pass-00", "makespan"),
    )
    runs = [
        a_run(library, "random-00", "throughput", value=rate.value / 2),
        a_run(library, "random-pass-00", "makespan", value=time.value),
        a_run(library, "giph-11", "makespan", status="failed", value=None),
    ]
    (row,) = summaries(library, runs)
    assert (row.entries, row.answers) == (3, 2)
    assert row.solved == pytest.approx(1 / 3)
    assert row.ratio_to_best == pytest.approx(2**0.5)
    assert row.gap_to_best == pytest.approx((0.51 * 0.01 * 1.01) ** (1 / 3) - 0.01)
    assert row.ratio_to_bound == pytest.approx(2**0.5)
    other = replace(runs[0], method="other", value=rate.value)
    assert [
        (row.method, row.entries, row.answers) for row in summaries(library, [*runs, other])
    ] == [
        ("mine", 3, 2),
        ("other", 3, 1),
    ]


def test_runs_on_other_versions_of_an_instance_are_left_out(
    folder: Path, tmp_path: Path, run: Callable, refusal: Callable
) -> None:
    """Their values are those of another problem; the table says how many there are."""
    library = open_library(folder)
    now = a_run(library, "random-00", "throughput", value=0.5)
    old = replace(now, digest="0" * 64, value=1.0)
    (row,) = summaries(library, current_runs(library, [old, now]))
    assert (row.entries, row.solved) == (1, 0.0)
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(asdict(r)) + "\n" for r in (old, now)))
    (tmp_path / "old.jsonl").write_text(json.dumps(asdict(old)) + "\n")
    words = ("library", "table")
    assert "Left out: 1 run on other versions of the instances." in run(*words, "r.jsonl").out
    assert "all results are for other versions" in refusal(*words, "old.jsonl")


def test_the_table_is_a_page(folder: Path, run: Callable, tmp_path: Path) -> None:
    out = tmp_path / "results.jsonl"
    words = ("random-00", "random-pass-00", "--placer", "single")
    answer = run("library", "run", *words, "-o", str(out))
    assert answer.status == 0
    assert answer.out.count("random-") == 2
    report = table([out])
    assert str(table([out, out])) == str(report)
    for name in ("page.md", "page.html"):
        answer = run("library", "table", str(out), "-o", name)
        assert (answer.status, answer.out) == (0, "")
    assert "<title>Results on the library</title>" in Path("page.html").read_text()
    text = Path("page.md").read_text()
    assert text == as_markdown(report, "Results on the library")
    assert "| single | 1 s | 1 of 1 |" in text
    assert text.startswith("# Results on the library\n")
    assert "Throughput: 1 entry; the best known value is proven to be the best" in text
    documents = json.loads(run("library", "table", str(out), "--json").out)
    assert [row["objective"] for row in documents] == ["throughput", "makespan"]
    assert run("library", "table", str(out), "-o", "page.txt").status == 2
