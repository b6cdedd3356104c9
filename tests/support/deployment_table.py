"""The table of the docs on deployments and commands, and a check of a row where a job runs."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from command_lines import settings_file
from fake_flink import write_program

from streamplace.flink.program.program import Program, remember
from streamplace.flink.watch import pods as watch_pods
from streamplace.flink.watch.watch import Watch

PAGE = Path(__file__).parents[2] / "docs/how-to/flink-clusters.md"
OFFERS = (
    '[[offers]]\nname = "other"\nprice = 0.1\ncores = 64\nmips = "90000 MIPS"\nmemory = "1 TB"\n'
)
"""One that no TaskManager is, so that a plan always changes something."""
QUOTED = re.compile(r"`(.+?)`")


def rows():
    """Deployment → cells of `profile`, `advise`, `move` and `watch`."""
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    head, *cells = ([cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines)
    assert head == ["deployment", "`profile`", "`advise`", "`move`, `watch --apply`", "`watch`"]
    return {re.sub(r"\[(.+?)\]\(.+?\)", r"\1", name): own for name, *own in cells}


def check_row(run, name, rest, job, folder):
    """Run each command on a job as the table says; returns the line on its deployment."""
    profile, advise, move, watch = rows()[name]
    (folder / "offers.toml").write_text(OFFERS)
    write_program(folder)
    given = ("--rest", rest, "--job", job)
    own = settings_file(folder, seconds=2, patience=4)
    offered = ("--rate", "2x", "--offers", str(folder / "offers.toml"), "--budget", "0.1")
    is_resource = rest.startswith("kubernetes:")  # whose savepoints are its operator's
    moved = () if is_resource else ("--savepoints", (folder / "saved").as_uri())
    lines = [
        _check(run("flink", "profile", *given, *own), profile),
        _check(run("flink", "advise", *given, *own, *offered), advise),
        _check(run("flink", "move", *given, *own, *moved, "--dry-run"), move),
    ]
    remember(job, Program(folder / "job.jar", "Job"))
    home = settings_file(folder, seconds=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Watch, "begin", lambda *_: "")
        patch.setattr(watch_pods, "watch_pods", interrupted)
        lines.append(_check(run("flink", "watch", *given, *home, *moved, "--apply"), move))
        lines.append(_check(run("flink", "watch", *given), watch))
    (line,) = {line for line in lines if line}
    return line


def interrupted(*_):
    """Stop a watch as a user does."""
    raise KeyboardInterrupt


def _check(answer, cell):
    """Check what a command printed; returns the line on the deployment, which comes first."""
    words: Sequence[str] = QUOTED.findall(cell)
    if cell.startswith("no"):
        assert (answer.status, answer.out) == (2, ""), answer
        assert answer.err.startswith("error: "), answer
        assert answer.err.count("\n") == 1, answer
        assert all(word in answer.err for word in words), answer
        return ""
    assert answer.status == 0, answer
    assert all(word in answer.out for word in words), answer
    assert ("the watch only looks" in answer.err) == (cell == "looks"), answer
    line, _, _ = answer.err.partition("\n")
    assert line.startswith("deployment: "), answer
    return str(line)
