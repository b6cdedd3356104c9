"""The local cluster as its user meets it: up, in use from the command line, and gone again."""

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
from command_lines import settings_file
from flink_clusters import awaited, pipeline

from streamplace.cli._process import interruptible
from streamplace.errors import SettingError
from streamplace.flink.layout import Layout
from streamplace.flink.local.session import find_flink, local_cluster
from streamplace.flink.pin.apply import apply
from streamplace.flink.program.program import Program
from streamplace.flink.rest.client import Rest

pytestmark = pytest.mark.xdist_group("flink")
STREAMPLACE = [sys.executable, "-c", "from streamplace.cli.main import main; main()"]


def processes_of(home):
    """Command lines of processes that run on this Flink."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return [line for line in found if str(home) in line and "java" in line]


@pytest.fixture
def lonely_home(flink, tmp_path):
    """The same Flink under a path of its own, so that its processes can be told from others."""
    home = tmp_path / "flink-of-this-test"
    home.symlink_to(flink.home)
    return home


@contextmanager
def started(home, folder):
    """``streamplace flink local`` with two devices, and the address that it printed."""
    command = [*STREAMPLACE, "flink", "local", "--devices", "2", "--flink-home", str(home)]
    own, pipe = {**os.environ, "TMPDIR": str(folder)}, subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=own)
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_nothing_is_left_however_it_ends(how, lonely_home, tmp_path):
    """Asked by Ctrl-C or a signal, or shot, which leaves its files only."""
    with started(lonely_home, tmp_path) as (process, url):
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", url)
        assert len(processes_of(lonely_home)) >= 3
        process.send_signal(how)
        assert process.wait(30) == (0 if how != signal.SIGKILL else -signal.SIGKILL)
    awaited(lambda: not processes_of(lonely_home), 10)
    assert how == signal.SIGKILL or not list(tmp_path.glob("streamplace-flink-*"))


@pytest.mark.slow
def test_it_goes_on_without_a_task_manager(lonely_home, tmp_path):
    """Which process that is, is told before and after; Ctrl-C leaves nothing here either."""
    with started(lonely_home, tmp_path) as (process, url):
        told = [process.stderr.readline() for _ in range(4)]
        assert told[-1] == "ready; Ctrl-C stops it\n"
        numbers = dict(re.findall(r"(dev-\d) is process (\d+)", "".join(told)))
        os.kill(int(numbers["dev-1"]), signal.SIGKILL)
        line = process.stderr.readline()
        ended = f"TaskManager dev-1 (process {numbers['dev-1']}) has ended; its log says: "
        assert line.startswith(ended)
        assert "dev-0" in Rest(url).offered()
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    awaited(lambda: not processes_of(lonely_home), 10)


@pytest.mark.slow
def test_a_cluster_that_cannot_start_says_why(flink):
    """In the words of whichever process ended first."""
    settings = {"jobmanager.rpc.port": "a harbour"}
    with (
        pytest.raises(SettingError, match=r"(jobmanager|dev-0) ended; its log says: .*a harbour"),
        local_cluster(flink, ["dev-0"], layers=1, settings=settings),
    ):
        pytest.fail("it came up without a port")


@pytest.mark.parametrize("name", ["1.20.1-amzn-0", "2.4-SNAPSHOT"])
def test_a_distribution_may_have_a_version_of_its_own(tmp_path, name):
    """Those of vendors and of developers; what is no complete jar is told in one line."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / f"flink-dist-{name}.jar").touch()
    flink = find_flink(tmp_path)
    assert (flink.version, flink.dist_jar.exists()) == (name, True)
    with pytest.raises(SettingError, match=r"config\.yaml"):
        flink.java_options()


@pytest.mark.parametrize(
    ("ignored", "signals", "is_ended"),
    [
        (signal.SIGINT, [signal.SIGINT], True),  # as shells start what they put in the background
        (None, [signal.SIGHUP] * 2, True),  # by the shell and the kernel
        (signal.SIGHUP, [signal.SIGHUP], False),  # by nohup
    ],
    ids=["in the background", "with its terminal", "not with its terminal"],
)
def test_a_signal_interrupts_a_command_once(ignored, signals, *, is_ended):
    """What comes while it ends does not disturb that."""
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGHUP)}
    ended = []
    try:
        signal.signal(signal.SIGHUP, lambda *_: pytest.fail("SIGHUP is not handled"))
        if ignored is not None:
            signal.signal(ignored, signal.SIG_IGN)
        with pytest.raises(KeyboardInterrupt) if is_ended else nullcontext(), interruptible():
            try:
                os.kill(os.getpid(), signals[0])
            finally:
                for one in signals[1:]:
                    os.kill(os.getpid(), one)
                ended.append(True)
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
    assert ended


@pytest.mark.slow
def test_the_ten_minutes_of_the_guide(run, rest, graph_jar, tmp_path):
    """Measure, place, apply and verify, all from the command line."""
    job = pipeline(1, 2, 1)
    address = ("--rest", rest.url)
    everywhere = {"op0": ["dev-0"], "op1": ["dev-1", "dev-2"], "op2": ["dev-0"]}
    first = apply(rest, Program(graph_jar, "GraphJob", [json.dumps(job)]), Layout(everywhere))
    watched = (*settings_file(tmp_path, seconds=2), "-o", "cluster.toml")
    assert run("flink", "cluster", *address, *watched).status == 0
    measured = tomllib.loads((tmp_path / "cluster.toml").read_text())
    assert all(0 < device["reserved"] < 2500 for device in measured["devices"])
    assert 0 < measured["overhead"] + measured["overhead_per_byte"] < 1e-2
    watched = settings_file(tmp_path, seconds=2, patience=0)
    answer = run("flink", "profile", *address, *watched, "-o", "graph.json")
    assert "3 operators" in answer.err
    rest.cancel(first)
    Path("place.toml").write_text("cluster = 'cluster.toml'\ntrust-profile = true\n")
    place = ("place", "graph.json", "--settings", "place.toml", "--subtasks")
    assert run(*place, "-o", "placement.json").status == 0
    placed = ("--placement", "placement.json", *address)
    home = ("--entry-class", "GraphJob", *settings_file(tmp_path))
    answer = run("flink", "apply", str(graph_jar), *placed, *home, "--", json.dumps(job))
    assert answer.status == 0, answer.err
    assert rest.live_jobs() == [answer.out.strip()]
    answer = run("flink", "verify", *placed)
    assert answer.status == 0
    assert "Every subtask runs where it was placed." in answer.out
