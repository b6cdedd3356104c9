"""Programs: their jars, their operators, the parallelism that they set, and what is remembered."""

import io
import json
import struct
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from command_lines import settings_file
from flink_clusters import pipeline
from flink_jars import build_jar
from refusals import refusal_of
from stores import small_files

from streamplace.errors import FormatError, SettingError
from streamplace.flink.advise.fixed_parallelism import (
    PlannedProgram,
    planned_twice,
    tasks_fixed_by,
    with_loose_streams,
)
from streamplace.flink.layout import Layout
from streamplace.flink.pin.apply import verify
from streamplace.flink.program import program as programs
from streamplace.flink.program.jars import MANIFEST, jar_copy, main_class
from streamplace.flink.program.operator_names import operators_of
from streamplace.flink.program.program import Program, kept_program, known_program, remember
from streamplace.flink.rest.answers import JobVertex, PlanNode
from streamplace.flink.rest.client import FlinkError, successor
from streamplace.flink.rest.plan import FlinkTask
from streamplace.model import Operator, Stream, StreamGraph

TEXT = "Manifest-Version: 1.0\r\nMain-Class: my.Main\r\n"
JOB = "0" * 32
UNKNOWN = "JAR -- ARGUMENTS$"


def jar(path, manifest=TEXT):
    """Jar with a manifest alone."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr(MANIFEST, manifest)
    return path


@pytest.mark.parametrize(
    ("manifest", "found"),
    [
        (TEXT, "my.Main"),
        ("Manifest-Version: 1.0\r\n", None),
        (f"{TEXT}program-class: my.Job\r\n", "my.Job"),  # Flink prefers it
        ("Manifest-Version: 1.0\nMain-Class: my.lo\n ng.Main\n", "my.long.Main"),
        ("Manifest-Version: 1.0\rmain-class: my.Main\r", "my.Main"),
        ("Manifest-Version: 1.0\n\nName: a/B.class\nMain-Class: of.AnEntry\n", None),
    ],
)
def test_the_main_class_is_the_manifests(tmp_path, manifest, found):
    assert main_class(jar(tmp_path / "job.jar", manifest)) == found


def test_a_job_that_is_moved_keeps_its_program_and_its_settings(tmp_path):
    """Other arguments, another main class or another jar are refused; settings are kept."""
    own = jar(tmp_path / "own.jar")
    before = Program(own, "my.Main", ["a", "1"], settings={"x": "1", "y": "1"}, parallelism=3)
    remember(JOB, before)
    same = replace(before, settings={"y": "2"}, parallelism=None)
    kept = kept_program(successor(JOB), same)
    assert (kept.settings, kept.parallelism) == ({"x": "1", "y": "2"}, 3)
    others = (
        replace(same, arguments=["b"]),
        replace(same, entry_class="my.Other"),
        replace(same, jar=jar(tmp_path / "other.jar", "your.Main")),
    )
    for other in others:
        with pytest.raises(SettingError, match=r"own\.jar a 1"):
            kept_program(JOB, other)
    assert kept_program("2" * 32, others[0]) is others[0]


def encrypt(path):
    """Mark what is packed as encrypted, in its header and in the directory."""
    content = bytearray(path.read_bytes())
    for position in (6, content.index(b"PK\x01\x02") + 8):
        struct.pack_into("<H", content, position, 1)
    path.write_bytes(content)


def corrupt(path):
    """Spoil what is packed."""
    content = bytearray(path.read_bytes())
    start = 30 + len(MANIFEST)
    content[start : start + 12] = b"\xff" * 12
    path.write_bytes(content)


def cut(path):
    """Spoil the directory."""
    path.write_bytes(path.read_bytes().replace(b"PK\x01\x02", b"PK\x07\x07"))


FAULTS: dict[str, tuple[Callable[[Path], object], str | None]] = {
    "missing": (Path.unlink, "A"),
    "a text": (lambda path: path.write_text("no jar"), "A"),
    "cut": (cut, "A"),
    "encrypted": (encrypt, None),
    "corrupt": (corrupt, None),
}
"""What befalls the jar, and its main class if that is given."""


@pytest.mark.parametrize(("spoil", "entry"), FAULTS.values(), ids=FAULTS)
def test_a_file_that_is_no_jar_is_refused(tmp_path, spoil, entry):
    """Its directory without the manifest, too: for libraries, and if the main class is given."""
    path = jar(tmp_path / "job.jar")
    spoil(path)
    refusal_of(path, Program(path, entry).check, kind=FormatError)


def test_a_jar_that_cannot_be_copied_is_told(tmp_path):
    """A watch goes on then; what fails while the copy is used is no such error."""
    path = jar(tmp_path / "job.jar")
    with pytest.raises(OSError, match="of the block"), jar_copy(path, [path], "copy.jar"):
        raise OSError("of the block")
    with small_files(), pytest.raises(FormatError), jar_copy(path, [], "copy.jar"):
        pass


def test_a_job_is_not_interrupted_where_nobody_can_agree(refusal, tmp_path, monkeypatch):
    """Without a terminal, as in a script, tries need a word; the cluster is not asked before."""
    for standard_input in (io.StringIO(), None):
        monkeypatch.setattr("sys.stdin", standard_input)
        assert "add --yes" in refusal("flink", "move", "--rest", "http://localhost:1")


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (("jar", "-o", "placed.jar"), "job.jar: "),
        (("apply",), "job.jar: "),
        (("apply", "--library", "text.jar"), "text.jar: "),
        (("move", "--job", JOB), "job.jar: "),
    ],
)
def test_every_command_that_takes_a_jar_refuses_a_damaged_one(refusal, tmp_path, words, place):
    """Before it asks a cluster for anything."""
    (tmp_path / "text.jar").write_text("no jar")
    encrypt(jar(tmp_path / "job.jar"))
    (tmp_path / "placement.json").write_text('{"assignment": {"a": "d0"}}')
    command, *more = words
    assert place in refusal("flink", command, "job.jar", "--placement", "placement.json", *more)


APPLY = "apply job.jar --placement spread.json"
MOVE = "move --rest http://127.0.0.1:1"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        # an idle device might take what belongs elsewhere
        ("jar job.jar --placement spread.json -o placed.jar", "devices"),
        (f"{APPLY} -D pipeline.name", "'pipeline.name'"),
        (f"{APPLY} --settings lossy.toml", "lossy.toml"),
        # they would be ignored without a jar
        (f"{MOVE} --job {JOB} --entry-class my.Main", "JAR"),
        (f"{MOVE} --resume", "--job"),
    ],
)
def test_options_without_what_they_need_are_refused(refusal, tmp_path, line, told):
    (tmp_path / "lossy.toml").write_text("allow_non_restored = true\n")
    (tmp_path / "spread.json").write_text('{"assignment": {"a#0": "dev-0", "a#1": "dev-1"}}')
    assert told in refusal("flink", *line.split())


@pytest.fixture
def program(tmp_path):
    """A program with everything that one may have."""
    return Program(
        jar(tmp_path / "job.jar"),
        "my.Main",
        ("--in", "x y"),
        [jar(tmp_path / "more.jar")],
        ("file:///c.jar",),
        {"a": "b=c"},
        3,
        64,
    )


def test_what_a_job_was_submitted_with_is_known_later(program):
    """Whole, and of the jobs that take its place, too."""
    remember(JOB, program)
    for job in (JOB, successor(JOB), successor(successor(JOB))):
        known = known_program(job)
        assert known.run_request(None) == program.run_request(None)
        assert (known.jar, known.libraries) == (program.jar, program.libraries)
        assert known.managed_mb == 64


def test_of_several_submissions_the_last_of_a_job_counts(program, tmp_path):
    """A job was moved with other arguments than it was submitted with."""
    remember(JOB, program)
    remember(successor(JOB), Program(jar(tmp_path / "new.jar"), "my.Main"))
    assert known_program(successor(successor(JOB))).jar.name == "new.jar"


def test_a_jar_that_was_changed_is_not_used(program):
    remember(JOB, program)
    jar(program.libraries[0], "changed")
    with pytest.raises(SettingError, match=r"more.jar .* JAR -- ARGUMENTS"):
        known_program(JOB)


def test_a_folder_that_cannot_be_written_to_is_no_error(program, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    remember(JOB, program)
    with pytest.raises(SettingError, match=UNKNOWN):
        known_program(JOB)


def test_old_jobs_are_forgotten(program, monkeypatch):
    monkeypatch.setattr(programs, "MAX_PROGRAMS", 2)
    for job in ("2" * 32, "3" * 32, JOB):
        remember(job, program)
    assert known_program(JOB)
    with pytest.raises(SettingError, match=UNKNOWN):
        known_program("2" * 32)


@pytest.mark.slow
@pytest.mark.xdist_group("flink")
def test_a_job_that_streamplace_submitted_is_moved_without_its_jar(run, rest, graph_jar, tmp_path):
    """Twice, for the job that takes its place is known, too."""
    where = ("--rest", rest.url)

    def placed(device):
        path = tmp_path / f"{device}.json"
        path.write_text(json.dumps({"assignment": {"op0": device, "op1": device}}))
        return "--placement", str(path)

    own = settings_file(tmp_path)
    given = (str(graph_jar), "--entry-class", "GraphJob", *where, *own, *placed("dev-0"))
    assert run("flink", "apply", *given, "--", json.dumps(pipeline(1, 1))).status == 0
    for device in ("dev-1", "dev-2"):
        saved = ("--savepoints", tmp_path.as_uri(), *settings_file(tmp_path, settle=0))
        answer = run("flink", "move", *where, *placed(device), *saved)
        assert answer.status == 0, answer.err
        assert "its options and arguments are used again" in answer.err
        assert verify(rest, answer.out.strip(), Layout({"op0": [device], "op1": [device]})).fine


def found(*tasks):
    """Operators of tasks: name, description."""
    vertices: list[JobVertex] = [
        {"id": f"v{i}", "name": name, "parallelism": 1, "status": "RUNNING"}
        for i, (name, _) in enumerate(tasks)
    ]
    nodes: list[PlanNode] = [
        {"id": f"v{i}", "description": text} for i, (_, text) in enumerate(tasks)
    ]
    return operators_of(vertices, nodes)


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("Source: lines", ["lines"]),
        ("[vertex-3]a -> (b -> c, d)", ["a", "b", "c", "d"]),
        (
            "Source: a -> (b, c -> out: Writer -> out: Committer)",
            ["a", "b", "c", "out", "out: Committer"],
        ),
        ("Source: to, fro -> f(x)", ["to, fro", "f(x)"]),
    ],
)
def test_fused_operators_are_read_from_the_name_of_their_task(task, expected):
    """What Flink puts around names goes."""
    assert [own.name for own in found((task, ""))[0]] == expected


@pytest.mark.parametrize(
    ("tasks", "names"),
    [
        # a pinned job tells which of its namesakes is which, in chains, too
        (
            [("Map -> Map", "any<br/>+- Map [namesake 3]<br/>"), ("Map", "Map [namesake 2]<br/>")],
            [("Map", "Map (3)"), ("Map (2)",)],
        ),
        # those of SQL are numbered in the order of the planner
        (
            [
                ("bids[11] -> Calc[12]", "[11]:Scan(x)<br/>+- [12]:Calc(x)<br/>"),
                ("Calc[9] -> out[13]: Writer", "[9]:Calc(y)<br/>+- out[13]: Writer<br/>"),
                ("part[3]", "part[3]<br/>"),  # only looks like one of SQL
            ],
            [("bids", "Calc (2)"), ("Calc", "out"), ("part[3]",)],
        ),
        # within one task their order makes no difference: they are placed together
        ([("Map -> Map", "")], [("Map", "Map (2)")]),
    ],
)
def test_operators_that_share_a_name_are_numbered(tasks, names):
    assert [tuple(own.name for own in task) for task in found(*tasks)] == names
    assert all(own.is_sure for task in found(*tasks) for own in task)


def test_texts_of_the_planner_are_kept():
    (task,) = found(("bids[1] -> out[2]: Writer", "[1]:Scan(&lt;x&gt;)<br/>+- out[2]: Writer<br/>"))
    assert [own.shown for own in task] == ["bids[1]", "out[2]: Writer"]
    assert [own.about for own in task] == ["Scan(<x>)", ""]
    assert [own.text for own in task] == ["[1]:Scan(<x>)", ""]


def test_nothing_is_sure_of_operators_of_one_name_in_several_tasks():
    """Flink calls operators Map that nobody has named."""
    alike = [("Map", "Map<br/>")] * 2
    assert [[(own.name, own.is_sure) for own in task] for task in found(*alike)] == [
        [("Map", False)],
        [("Map (2)", False)],
    ]


JOBS = Path(__file__).parents[2] / "datasets" / "applications" / "jobs"
NEEDED = ("Application", "Auctions", "NexmarkQ5")


def set_by_program(rest, program):
    """Operator → parallelism, where the program sets it."""
    planned = planned_twice(rest, program)
    return {planned.name[id_]: number for id_, number in planned.fixed.items()}


@pytest.mark.xdist_group("flink")
def test_what_the_program_sets_is_told(rest, log_jar):
    """LogJob says 4 for 'detect' alone, and nothing of it is left on the cluster."""
    before = rest.get("/jars")["files"]
    assert set_by_program(rest, Program(log_jar, "LogJob", ["200"])) == {"detect": 4}
    assert rest.get("/jars")["files"] == before
    assert not rest.live_jobs()


@pytest.mark.xdist_group("flink")
@pytest.mark.slow
def test_a_program_whose_classes_are_in_a_library_is_planned(rest, log_jar, jobs):
    """Jars that it names with --library go with it; MixedJob sets all numbers of its own."""
    found = set_by_program(rest, Program(log_jar, "MixedJob", ["100"], [jobs]))
    assert found["numbers"] == 1
    assert found["count"] == found["total"] == 2


@pytest.mark.xdist_group("flink")
@pytest.mark.slow
def test_an_operator_that_has_one_subtask_in_every_plan_is_fixed(rest, flink, tmp_path):
    """A window over all tuples has one subtask; names of its function change with every plan."""
    jar = tmp_path / "q5.jar"
    build_jar(flink, [JOBS / f"{name}.java" for name in NEEDED], jar)
    planned = planned_twice(rest, Program(jar, "NexmarkQ5", ["200"]))
    (window,) = planned.fixed
    assert planned.name[window].startswith("TriggerWindow(TumblingProcessingTimeWindows(2000)")


WINDOW = "Window(Count, Job$$Lambda)"
TEXTS = [f"Window(Count, Job$$Lambda${i}/0x7f@12a{i})" for i in range(2)]
"""Addresses of functions change with every plan, and are all that tells two windows apart."""
NAMES = {"v0": "src", "v1": "parse", "v2": "out", "v3": WINDOW, "v4": WINDOW, "v5": "sink"}
CHAIN = [("src -> parse", 4, ""), ("detect", 2, ""), ("out", 1, "")]
SUMS = [("keyed", 3, TEXTS[0]), ("all", 1, TEXTS[1]), ("sink", 1, "")]


@pytest.mark.parametrize(
    ("numbers", "tasks", "found"),
    [
        ({"v1": 4, "v2": 1}, CHAIN, {"src -> parse", "out"}),
        ({"v3": 3, "v4": 1}, SUMS, {"keyed", "all"}),
        ({"v1": 3}, CHAIN, "parallelism 3 .*'parse', .* 4"),
        ({"v3": 2, "v4": 1}, SUMS, "parallelism 1 or 2 .* 3"),
    ],
)
def test_tasks_of_fixed_operators_are_found(numbers, tasks, found):
    """By names or texts; a program that sets other numbers than the job has is not its program."""
    plan, jar = PlannedProgram(NAMES, numbers), Path("job.jar")
    job = [FlinkTask(name, name, name, n, (name,), texts=(text,)) for name, n, text in tasks]
    if isinstance(found, str):
        with pytest.raises(FlinkError, match=found):
            tasks_fixed_by(plan, jar, job)
    else:
        assert tasks_fixed_by(plan, jar, job) == found


def test_a_forward_stream_between_a_fixed_operator_and_another_is_rebalanced():
    """Flink forwards it only where both happen to have equally many subtasks."""
    operators = [Operator("src", rate=1), *map(Operator, ("all", "best", "sink"))]
    streams = [
        Stream("src", "all", partitioning="hash"),
        Stream("all", "best", partitioning="forward"),
        Stream("best", "sink", partitioning="forward"),
    ]
    graph = StreamGraph.of("job", operators, streams)

    def kinds(*fixed):
        return with_loose_streams(graph, fixed).streams.partitioning

    assert kinds() == kinds("all", "best", "sink") == ("hash", "forward", "forward")
    assert kinds("all") == ("hash", "rebalance", "forward")
    assert kinds("all", "best") == ("hash", "forward", "rebalance")
