"""A short command and a first placement start in little CPU time and memory.

Times are the least CPU times of new processes, as ratios to importing numpy, so that they hold on
slow and on busy machines.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import streamsim

import streamplace
from streamplace.io.graphs import write_graph
from streamplace.model import Operator, Stream, StreamGraph

NUMPY = ("-c", "import numpy")
SIMULATE = ("-m", "streamplace", "simulate", "graph.json", "placement.json")
FIRST_PLACEMENT = """
from pathlib import Path
from streamplace import Cluster, Operator, Stream, StreamGraph, place

operators = [Operator("0", ipt=2e5, rate=1e4), *(Operator(str(i), ipt=2e5) for i in range(1, 10))]
streams = [Stream(str(i), str(i + 1)) for i in range(9)]
place(StreamGraph.of("chain", operators, streams), Cluster.uniform(5), budget="10 ms")
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
print(status["VmHWM"].split()[0])
"""
ROUNDS = 12
"""Most measurements of each process; the first that holds the limit is enough."""
NOT_NEEDED = (
    *("difflib", "tomllib", "numpy.random", "numpy.ma", "rich.console", "streamplace.evaluate"),
    *("streamplace.engines.deployment", "streamplace.io.clusters", "streamplace.io.interchange"),
    *("streamplace.model.placement_rules", "streamplace.model.what_if", "streamplace.planning"),
    *("streamplace.objectives.relocation", "streamplace.placers.registry"),
)
"""Modules that simulate needs for some inputs alone."""


@pytest.fixture
def folder(tmp_path):
    """Folder with a graph, a placement, and the packages without byte code."""
    clean = shutil.ignore_patterns("__pycache__")
    for package in (streamplace, streamsim):
        source = Path(package.__file__).parent
        shutil.copytree(source, tmp_path / source.name, ignore=clean)
    names = "abcde"
    operators = [Operator(name, ipt=2e5, rate=1e4 if name == "a" else 0) for name in names]
    streams = [Stream(u, v) for u, v in pairwise(names)]
    write_graph(StreamGraph.of("chain", operators, streams), tmp_path / "graph.json")
    assignment = {name: f"d{i}" for i, name in enumerate(names)}
    (tmp_path / "placement.json").write_text(json.dumps({"assignment": assignment}))
    return tmp_path


def started(folder, *words):
    """CPU seconds of a new process, and what it prints."""
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *words],
        env={**environment, "PYTHONPATH": path},
        cwd=folder,
        capture_output=True,
        text=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, done.stdout


def check_start(folder, limit, *words):
    """Check that a process takes at most ``limit`` times the CPU of importing numpy."""
    numpy, ours = [], []
    for _ in range(ROUNDS):
        numpy.append(started(folder, *NUMPY)[0])
        ours.append(started(folder, *words)[0])
        if min(ours) <= limit * min(numpy):
            return
    pytest.fail(f"{min(ours):.3f} s of CPU, and {min(numpy):.3f} s to import numpy")


@pytest.mark.parametrize(("limit", "options"), [(3, ()), (4, ("-B",))])
def test_simulate_starts_in_few_times_the_cpu_of_numpy(folder, limit, options):
    """With -B, Python cannot write the byte code of our packages; others have theirs."""
    started(folder, *options, *SIMULATE)  # which writes the byte code
    check_start(folder, limit, *options, *SIMULATE)


def test_a_first_placement_takes_little_time_and_memory(folder):
    """With the default placer: 0.4 s where numpy takes 0.08 s, and 110 MB."""
    _, kilobytes = started(folder, "-c", FIRST_PLACEMENT)  # which writes the byte code
    assert int(kilobytes) < 110e3
    check_start(folder, 5, "-c", FIRST_PLACEMENT)


def test_simulate_loads_no_module_that_its_input_does_not_need(folder):
    run = f"import runpy, sys; sys.argv = {list(SIMULATE[1:])}"
    code = f"""{run}
try:
    runpy.run_module("streamplace", run_name="__main__")
except SystemExit:
    print(*sys.modules)
"""
    _, printed = started(folder, "-c", code)
    assert set(NOT_NEEDED).isdisjoint(printed.splitlines()[-1].split())
