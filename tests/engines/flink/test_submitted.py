"""What jobs were submitted with, remembered on this machine."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_lines import settings_file
from fake_flink import FakeFlink, config
from flink_clusters import pipeline

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.pin.verify import verify
from streamplace.engines.flink.program import submitted
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.program.submitted import (
    known_program,
    remember,
    remembered_program,
)
from streamplace.engines.flink.rest.client import Rest
from streamplace.engines.flink.rest.job_ids import successor
from streamplace.errors import SettingError

JOB = "0" * 32


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """A program with everything that one may have."""
    return Program(
        jar_of(tmp_path / "job.jar"),
        "my.Main",
        ("--in", "x y"),
        [jar_of(tmp_path / "more.jar")],
        ("file:///c.jar",),
        {"a": "b=c"},
        3,
        64,
    )


def jar_of(path: Path, text: str = "") -> Path:
    """A jar."""
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("A.class", text)
    return path


def test_what_a_job_was_submitted_with_is_known_later(program: Program) -> None:
    """Whole, and of the jobs that take its place, too."""
    remember(JOB, program)
    for job in (JOB, successor(JOB), successor(successor(JOB))):
        known = remembered_program(job)
        assert known is not None
        assert known.run_request() == program.run_request()
        assert (known.jar, known.libraries) == (program.jar, program.libraries)
        assert known.managed_mb == 64
    assert remembered_program("1" * 32) is None


def test_of_several_submissions_the_last_of_a_job_counts(program: Program, tmp_path: Path) -> None:
    """A job was moved with other arguments than it was submitted with."""
    remember(JOB, program)
    remember(successor(JOB), Program(jar_of(tmp_path / "new.jar"), "my.Main"))
    known = remembered_program(successor(successor(JOB)))
    assert known is not None
    assert known.jar.name == "new.jar"


def test_a_jar_that_was_changed_is_not_used(program: Program) -> None:
    remember(JOB, program)
    jar_of(program.libraries[0], "changed")
    with pytest.raises(SettingError, match=r"more.jar is not the jar any more .* JAR -- ARGUMENTS"):
        remembered_program(JOB)


def test_a_folder_that_cannot_be_written_to_is_no_error(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    remember(JOB, program)
    assert remembered_program(JOB) is None


def test_old_jobs_are_forgotten(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submitted, "MOST", 2)
    for job in ("2" * 32, "3" * 32, JOB):
        remember(job, program)
    assert remembered_program("2" * 32) is None
    assert remembered_program(JOB) is not None


def uploads(*names: str, **settings: str) -> dict[str, Any]:
    """Answers of a cluster with uploaded jars."""
    return {
        "GET /jars": {
            "files": [{"id": f"1_{name}", "name": name, "uploaded": 0} for name in names]
        },
        "GET /jobmanager/config": config(
            {key.replace("_", "."): value for key, value in settings.items()}
        ),
    }


def test_a_job_that_is_not_known_is_asked_for_in_one_line() -> None:
    """With the jars that were uploaded; those of streamplace itself are none of the job."""
    own = "streamplace-0000000000000000_placed-job.jar"
    with pytest.raises(SettingError) as raised:
        known_program(FakeFlink(uploads("shop.jar", own)).rest, JOB)
    text = str(raised.value)
    assert text.endswith(
        "name its jar and arguments, as in: JAR -- ARGUMENTS. Jars that were uploaded: 'shop.jar'"
    )
    assert len(text.splitlines()) == 1
    with pytest.raises(SettingError, match=r"JAR -- ARGUMENTS$"):  # it takes no jars
        known_program(FakeFlink().rest, JOB)


def test_an_uploaded_jar_that_lies_on_this_machine_is_named_by_its_path(tmp_path: Path) -> None:
    """Flink's REST interface gives no jar back, but the JobManager's folder may be readable."""
    place = tmp_path / "flink-web-upload"
    place.mkdir()
    jar = jar_of(place / "1_shop.jar")
    flink = FakeFlink(uploads("shop.jar", web_tmpdir=str(tmp_path)))
    with pytest.raises(SettingError, match=f"uploaded lie in {jar}$"):
        known_program(flink.rest, JOB)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (f"move --job {JOB} --entry-class my.Main", "name JAR, too"),
        (f"advise --job {JOB} --rate 2x --entry-class my.Main", "name JAR, too"),
        (f"watch --job {JOB} --placement p.json --spare a --entry-class A", "name JAR, too"),
        ("move --resume", "--resume without JAR needs --job"),
    ],
)
def test_options_that_would_be_ignored_without_a_jar_are_refused(
    refusal: Callable[..., str], tmp_path: Path, line: str, told: str
) -> None:
    (tmp_path / "p.json").write_text(json.dumps({"assignment": {}}))
    assert told in refusal("flink", *line.split(), "--rest", "http://127.0.0.1:1")


@pytest.mark.slow
@pytest.mark.xdist_group("flink")
def test_a_job_that_streamplace_submitted_is_moved_without_its_jar(
    run: Callable[..., Any], rest: Rest, flink: Flink, graph_jar: Path, tmp_path: Path
) -> None:
    """Twice, for the job that takes its place is known, too."""
    where, home = ("--rest", rest.url), str(flink.home)

    def placed(device: str) -> tuple[str, str]:
        path = tmp_path / f"{device}.json"
        path.write_text(json.dumps({"assignment": {"op0": device, "op1": device}}))
        return "--placement", str(path)

    own = settings_file(tmp_path, flink_home=home)
    given = (str(graph_jar), "--entry-class", "GraphJob", *where, *own, *placed("dev-0"))
    assert run("flink", "apply", *given, "--", json.dumps(pipeline(1, 1))).status == 0
    for device in ("dev-1", "dev-2"):
        saved = (
            "--savepoints",
            tmp_path.as_uri(),
            *settings_file(tmp_path, flink_home=home, settle=0),
        )
        answer = run("flink", "move", *where, *placed(device), *saved)
        assert answer.status == 0, answer.err
        assert "its options and arguments are used again" in answer.err
        assert verify(rest, answer.out.strip(), Layout({"op0": [device], "op1": [device]})).fine
