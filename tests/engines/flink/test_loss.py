"""What comes and goes on a real cluster: TaskManagers, spares, jobs that are not placed."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from command_lines import settings_file
from flink_clusters import TALLY, Tally, WatchThread, come_back, flink_run, mover, pipeline

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.local.session import LocalCluster, local_cluster
from streamplace.engines.flink.move.savepoints import stop
from streamplace.engines.flink.pin.apply import apply
from streamplace.engines.flink.pin.verify import verify
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.client import ENDED, FlinkError, Rest

pytestmark = [pytest.mark.xdist_group("flink"), pytest.mark.slow]
DEVICES = ["dev-0", "dev-1", "dev-2"]
UNEVEN: dict[str, list[str]] = {"op0": ["dev-0"], "op1": ["dev-0", "dev-1", "dev-1"]}


@pytest.fixture(scope="module")
def roomy(flink: Flink) -> Iterator[LocalCluster]:
    """A cluster of three devices with room for another; it takes no jar but by REST."""
    with local_cluster(flink, DEVICES, layers=2, room=1) as running:
        yield running


@pytest.fixture
def rest(roomy: LocalCluster) -> Iterator[Rest]:
    """REST of the cluster; what a test has lost is there again, and what it has added is not."""
    answer = Rest(roomy.url)
    for device in DEVICES:
        if roomy.processes[device].poll() is not None:
            come_back(answer, roomy, device)
    yield answer
    for job in answer.jobs():
        answer.cancel(job)
    if "new-1" in roomy.processes and roomy.processes["new-1"].poll() is None:
        roomy.kill("new-1")
        while "new-1" in answer.offered():
            time.sleep(0.1)


def job_of(graph: dict[str, Any], jar: Path) -> Program:
    """The job that runs a graph."""
    return Program(jar, "GraphJob", [json.dumps(graph)])


def test_a_task_manager_is_added_while_the_others_run(
    rest: Rest, roomy: LocalCluster, flink: Flink, graph_jar: Path
) -> None:
    """A job that restarts does not flow over to it, and a new one is spread over it."""
    program = job_of({**pipeline(1, 3), "restart": True}, graph_jar)
    before = {device: roomy.processes[device].pid for device in DEVICES}
    job = apply(rest, flink, program, Layout(UNEVEN))
    roomy.start("new-1")
    while "new-1" not in rest.offered():
        assert roomy.processes["new-1"].poll() is None
    roomy.kill("dev-1")
    come_back(rest, roomy, "dev-1")
    rest.wait_running(job, 120)
    assert verify(rest, job, Layout(UNEVEN)).fine
    both = {"op0": ["dev-2"], "op1": ["new-1", "new-1", "dev-1"]}
    other = apply(rest, flink, program, Layout(both))
    assert verify(rest, other, Layout(both)).fine
    assert verify(rest, job, Layout(UNEVEN)).fine
    assert {d: roomy.processes[d].pid for d in ("dev-0", "dev-2")} == {
        d: before[d] for d in ("dev-0", "dev-2")
    }


def test_jobs_that_are_not_placed_and_placed_ones_are_told_apart(
    rest: Rest, flink: Flink, graph_jar: Path
) -> None:
    """Each takes from the other what it needs, and is named for it."""
    program = job_of(pipeline(1, 1), graph_jar)
    jar = rest.upload(graph_jar)
    ordinary = rest.run_jar(jar, "GraphJob", program.arguments)
    rest.wait_running(ordinary)
    everywhere = {"op0": DEVICES[:1], "op1": DEVICES[1:2], "op2": DEVICES[2:]}
    wider = job_of({**pipeline(1, 1, 1), "restart": True}, graph_jar)
    refusal = f"is fully occupied by '{ordinary}': each slot of a job without a placement"
    with pytest.raises(FlinkError, match=refusal):
        apply(rest, flink, wider, Layout(everywhere))
    rest.cancel(ordinary)
    apply(rest, flink, wider, Layout(everywhere))
    ordinary = rest.run_jar(jar, "GraphJob", wider.arguments)
    rest.remove_jar(jar)
    assert uploaded(rest) == []
    deadline = time.monotonic() + 30
    while not (told := why_not_running(rest, ordinary)):
        assert time.monotonic() < deadline
    assert "a job without a placement requests whole TaskManagers" in told


def why_not_running(rest: Rest, job: str) -> str:
    """What is told of a job that does not run, once it waits for slots or restarts for them."""
    try:
        rest.running_job(job)
    except FlinkError as error:
        print(error)
        return str(error) if "wait until all of them run" not in str(error) else ""
    return ""


def uploaded(rest: Rest) -> list[Any]:
    """Jars on a cluster."""
    with urlopen(f"{rest.url}/jars") as answer:
        return list(json.load(answer)["files"])


UNEVENLY: Layout = Layout.from_json(
    {
        **TALLY,
        **{name: ["dev-0", "dev-1", "dev-1"] for name in ("KeyedProcess", "Process", "Writer")},
    }
)


def test_a_spare_takes_over_with_the_state_when_a_task_manager_is_lost(
    rest: Rest, roomy: LocalCluster, flink: Flink, jobs: Path, tmp_path: Path
) -> None:
    """Whole operators and counts; then the one that was lost is a spare itself."""
    tally = Tally(rest, flink, jobs, tmp_path)
    program = tally.retained()
    job = tally.place(program, UNEVENLY)
    watch = WatchThread(mover(rest, flink, program, tmp_path), job, UNEVENLY)
    for lost, number in (("dev-1", 1), ("dev-2", 2)):
        roomy.kill(lost)
        now, layout = watch.started(number)
        if lost == "dev-1":
            come_back(rest, roomy, lost)
        assert verify(rest, now, layout).fine
        restored = rest.get(f"/jobs/{now}/checkpoints")["latest"]["restored"]
        assert restored["external_path"].startswith("file:")
        before = len(tally.lines("windows"))
        while len(tally.lines("windows")) <= before:
            assert rest.job(now)["state"] not in ENDED
    there = UNEVENLY.with_spares({"dev-1": "dev-2"}), UNEVENLY
    pairs = zip(there, watch.runs, strict=True)
    assert not any(where.moved_from(layout) for where, (_, layout) in pairs)
    stop(rest, now, tmp_path.as_uri())
    watch.ends()
    (error,) = watch.ended
    assert error.startswith(f"job {now} was stopped with a savepoint")
    tally.check_counts()
    windows = Counter((key, first // 100) for key, first, _ in tally.lines("windows"))
    assert set(range(10)) == {key for key, _ in windows}


def test_a_spare_stands_in_for_a_job_that_failed_before_flink_noticed_the_loss(
    rest: Rest, roomy: LocalCluster, flink: Flink, jobs: Path, tmp_path: Path
) -> None:
    """Without restarts it fails as soon as a connection breaks; Flink notices seconds later."""
    tally = Tally(rest, flink, jobs, tmp_path)
    program = tally.retained()
    fragile = replace(program, settings={**program.settings, "restart-strategy.type": "none"})
    job = tally.place(fragile, UNEVENLY)
    watch = WatchThread(mover(rest, flink, fragile, tmp_path), job, UNEVENLY)
    roomy.kill("dev-1")
    now, layout = watch.started()
    failed_first = f"job {job} has failed; waiting for Flink to notice a lost TaskManager"
    lost_first = "lost: 'dev-1'; waiting 0.5 s for it"
    assert watch.steps[0] in (failed_first, lost_first)  # as Flink tells it
    assert not UNEVENLY.with_spares({"dev-1": "dev-2"}).moved_from(layout)
    assert verify(rest, now, layout).fine
    rest.cancel(now)
    watch.ends()


def test_a_cluster_that_takes_no_jars_is_told_and_runs_the_jar_that_is_written(
    run: Callable, flink: Flink, graph_jar: Path, tmp_path: Path
) -> None:
    """By 'flink run', which needs no upload."""
    (tmp_path / "c.toml").write_text(
        'bandwidth = "1 Gbps"\ndevices = [{name = "dev-0"}, {name = "dev-1"}]\n'
    )
    assignment = {"op0": "dev-1", "op1#0": "dev-0", "op1#1": "dev-1", "op1#2": "dev-1"}
    (tmp_path / "p.json").write_text(json.dumps({"assignment": assignment}))
    settings = {"web.submit.enable": "false"}
    given = (str(graph_jar), "--entry-class", "GraphJob", "--placement", "p.json")
    home, graph = str(flink.home), json.dumps(pipeline(1, 3))
    with local_cluster(flink, DEVICES[:2], settings=settings) as cluster:
        own = settings_file(tmp_path, flink_home=home)
        answer = run("flink", "apply", *given, *own, "--rest", cluster.url, "--", graph)
        assert answer.status == 2
        assert "accepts no jars (web.submit.enable: false); write a jar with" in answer.err
        answer = run(
            "flink", "jar", *given, "--flink-home", home, "--cluster", "c.toml", "-o", "placed.jar"
        )
        assert answer.status == 0, answer.err
        assert "run it by: flink run -c Placed placed.jar GraphJob ARGUMENTS" in answer.err
        words = ("-c", "Placed", "placed.jar", "GraphJob", graph)
        flink_run(flink, tmp_path, cluster.url, *words)
        rest = Rest(cluster.url)
        (job,) = rest.live_jobs()
        rest.wait_running(job)
        vectors = {"op0": ["dev-1"], "op1": ["dev-0", "dev-1", "dev-1"]}
        assert verify(rest, job, Layout(vectors)).fine
