"""The extension module: whatever comes in is an answer or an error, and problems can be shared."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from core_calls import NEVER_CALLED, moves, record, spoiled
from everything import OF_STREAMS, OF_TASKS, OTHERS, write_examples
from problems import PROBLEMS
from running import Late, ended_after
from streamsim import _core, throughput
from streamsim.passes import merged_order, operator_times
from streamsim.sources import leading_to

from streamplace import read_problem
from streamplace.cli.main import main
from streamplace.families.registry import FAMILIES
from streamplace.io.graphs import write_graph
from streamplace.io.problems import write_problem
from streamplace.learn.models.pilot.features import features_of
from streamplace.model import Cluster, Problem
from streamplace.model.coarsening import finest_level
from streamplace.placers.exact.peak_bounds import hubs_of
from streamplace.placers.exact.units import units_of
from streamplace.placers.meter import Remaining
from streamplace.scheduling.tasks import tasks_of

SECONDS = 0.1
"""Time after which a signal ends a call, as Ctrl-C does."""


ERRORS = (Late, ValueError, TypeError, OverflowError, AttributeError)
SCHEDULERS = (
    "cpop",
    "duplex",
    "etf",
    "eft",
    "foresight",
    "heft",
    "peft",
    "sct",
    "pilot-makespan",
    "exact",
    "auto",
)


def use_everything():
    """Run command lines that use all of the core."""
    lines = [*OF_STREAMS, *OF_TASKS, *OTHERS]
    lines += [f"place tasks.json --placer {name} --budget 0.02" for name in SCHEDULERS]
    lines += [f"place graph.json --placer {name} --budget 0.1" for name in ("exact", "pilot")]
    lines += ["place graph.json --objective cost --budget 0.02"]
    lines += ["place tasks.json --objective makespan:queue=order --placer anneal --budget 0.05"]
    family = FAMILIES["random-dag"]
    large = next(iter(family.generate(family.parameters(operators=400), seed=0)))
    write_graph(large, Path("large.json"))
    lines += [f"place large.json --placer {name} --budget 0.3" for name in ("anneal", "exact")]
    family = FAMILIES["branched"]
    wide = next(
        iter(family.generate(family.parameters(branches=6, depth=2, devices=5, copies=1), seed=0))
    )
    write_graph(wide, Path("wide.json"))
    lines += ["place wide.json --rate 40000 --placer exact --budget 0.5"]
    lines += ["generate random-dag --operators 80 -o many.jsonl"]
    for i, problem in enumerate(PROBLEMS.values()):
        write_problem(problem, Path(f"{i}.json"))
        lines += [f"place {i}.json --placer {name} --budget 0.05" for name in ("metis", "auto")]
    for line in lines:
        with pytest.raises(SystemExit) as stop:
            main(line.split())
        assert not stop.value.code, line
    problem = read_problem("many.json")
    leading_to(problem.instance, np.ones(problem.n_operators, np.bool_))
    place = np.zeros(problem.n_operators, np.int32)
    merged_order(problem.one_pass, place, np.arange(problem.n_operators, dtype=np.float64))
    operator_times(problem.one_pass, place[None])
    tasks = tasks_of(problem)
    for timed in (_core.start_times, _core.held_and_eager):
        timed(tasks.core, tasks.order, place)
    hubs = hubs_of(units_of(Problem(wide, Cluster.uniform(3))))
    _core.spread(hubs[0], 0.9, 3, 1000, Remaining(0.1))
    level = finest_level(problem).compiled
    level.heavy_groups(place, np.arange(len(place)), 1.0, Remaining(0.1))
    state = _core.PilotState(features_of(problem))
    state.put(0, 0)
    state.measure(1, 1)


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    """Calls by name that commands make."""
    folder = tmp_path_factory.mktemp("everything")
    write_examples(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        found = record(patch, use_everything)
    problem = PROBLEMS["constrained"]
    return found | moves(problem.instance, np.zeros(problem.n_operators, np.int32))


def names():
    """Functions, classes and methods of the core."""
    for name, thing in vars(_core).items():
        if name[0] != "_" and callable(thing) and name not in NEVER_CALLED:
            yield name
        if isinstance(thing, type):
            methods = (method for method in vars(thing) if method[0] != "_")
            yield from (
                f"{name}.{method}" for method in methods if callable(getattr(thing, method))
            )


def test_commands_use_all_of_the_core(calls):
    assert sorted(set(names()) - set(calls)) == []


@pytest.mark.parametrize("count", [1000, pytest.param(100_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", [*names(), "Incremental"])
def test_spoiled_arguments_are_answered_or_refused(calls, name, count):
    rng = np.random.default_rng(len(name))
    refused = 0
    for _ in range(count):
        function, arguments, keywords = calls[name][rng.integers(len(calls[name]))]
        arguments = [*arguments]
        for _ in range(rng.integers(1, 3) if arguments else 0):
            at = rng.integers(len(arguments))
            arguments[at] = spoiled(arguments[at], rng)
        try:
            with ended_after(SECONDS):
                function(*arguments, **keywords)
        except ERRORS:
            refused += 1
    assert refused or not arguments


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_problems_are_shared_by_threads_and_sent_to_processes(start):
    instance = PROBLEMS["fork-join"].instance
    shape = 100, instance.n_operators
    batch = np.random.default_rng(0).integers(0, instance.n_devices, shape).astype(np.int32)
    expected = throughput(instance, batch).tolist()
    with ThreadPoolExecutor(4) as pool:
        assert all(
            found.tolist() == expected
            for found in pool.map(throughput, [instance] * 40, [batch] * 40)
        )
    with ProcessPoolExecutor(2, mp_context=get_context(start)) as pool:
        assert pool.submit(throughput, instance, batch).result().tolist() == expected
