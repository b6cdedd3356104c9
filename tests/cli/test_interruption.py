"""Ctrl-C at every moment: exit code 130 and one line."""

import json
import os
import subprocess
import sys
import time

import pytest
from problems import fork_join

from streamplace.io.graphs import graph_to_dict

SITE = """
import os, signal, sys

def interrupt(_=None):
    os.kill(os.getpid(), signal.SIGINT)
    any(())

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["INTERRUPTING"]:
            interrupt()

sys.meta_path.insert(0, Interrupting())
"""
IN_A_DESTRUCTOR = SITE.replace(" interrupt()", " type('Destroyed', (), {'__del__': interrupt})()")
"""Python drops exceptions there."""
AT_A_WORKER = """
import os, signal, sys

if any("spawn_main" in word for word in sys.orig_argv):
    for file in os.environ["INTERRUPTING"].split():
        try:
            os.close(os.open(file, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        os.killpg(0, signal.SIGINT)
        break
"""
"""A terminal sends Ctrl-C to all processes of the command, here while a worker starts."""
MODULES = [
    "streamplace.cli.main",
    pytest.param("numpy", marks=pytest.mark.slow),
    "streamsim",
    pytest.param("pydantic", marks=pytest.mark.slow),
]
"""From the first that is imported to one of the last."""


def run_with(folder, site, interrupting, *words, prefix=()):
    """Run a command line in whose processes a module runs first, in a session of its own."""
    (folder / "site").mkdir(exist_ok=True)
    (folder / "site" / "sitecustomize.py").write_text(site)
    paths = [str(folder / "site"), *filter(None, os.environ.get("PYTHONPATH", "").split(":"))]
    environment = {**os.environ, "PYTHONPATH": ":".join(paths), "INTERRUPTING": interrupting}
    return subprocess.run(
        [*prefix, sys.executable, "-m", "streamplace", *words],
        capture_output=True, text=True, env=environment, cwd=folder, timeout=300,
        start_new_session=True,
    )  # fmt: skip


def interrupted(module, folder, *prefix):
    """Place a graph, with a Ctrl-C when a module is imported."""
    return run_with(folder, SITE, module, "place", "graph.json", prefix=prefix)


@pytest.mark.parametrize("module", MODULES)
def test_ctrl_c_in_an_import_exits_130_in_one_line(module, graph, tmp_path):
    """Libraries may catch it, or wrap it in an error of their own."""
    done = interrupted(module, tmp_path)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr.splitlines()[-1] == "error: interrupted"
    assert "Traceback" not in done.stderr


def test_an_interrupt_that_python_drops_counts(graph, tmp_path):
    done = run_with(tmp_path, IN_A_DESTRUCTOR, "streamplace.settings.base", "place", "graph.json")
    assert (done.returncode, done.stderr.strip()) == (130, "error: interrupted")


def test_a_process_that_ignores_ctrl_c_goes_on_ignoring_it(graph, tmp_path):
    done = interrupted("click", tmp_path, "sh", "-c", 'trap "" INT; exec "$@"', "sh")
    assert (done.returncode, done.stderr) == (0, "")


def on_a_data_set(folder, *words, interrupts="once"):
    """Run a command on 20 graphs by two processes, with a Ctrl-C for each word of ``interrupts``.

    They are sent while the processes start, each at most once in a folder.
    """
    graphs = [json.dumps({**graph_to_dict(fork_join()), "name": f"g{i}"}) for i in range(20)]
    (folder / "set.jsonl").write_text("\n".join(graphs) + "\n")
    (folder / "jobs.toml").write_text("jobs = 2\n")
    line = (words[0], "set.jsonl", *words[1:], "--settings", "jobs.toml")
    return run_with(folder, AT_A_WORKER, interrupts, *line)


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (["place", "--placer", "metis", "-o", "answers.jsonl"], "answers.jsonl"),
        pytest.param(
            ["compare", "--placers", "metis,round-robin", "-o", "out"],
            "out",
            marks=pytest.mark.slow,
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_after_ctrl_c_the_command_continues(tmp_path, words, kept):
    stopped = on_a_data_set(tmp_path, *words)
    message = f"stopped; {kept} holds what is done, and the same command continues from there"
    assert stopped.stderr.split("\n") == [message, "", "error: interrupted", ""]
    assert (stopped.returncode, stopped.stdout) == (130, "")
    again = on_a_data_set(tmp_path, *words)
    assert again.returncode == 0, again.stderr
    assert (
        "20 of 20 graphs placed" if words[0] == "place" else "20 graphs"
    ) in again.stdout + again.stderr


def test_ctrl_c_has_advice(run, graph, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("streamplace.evaluate.scan.scan", interrupted)
    answer = run("compare", graph, "--placers", "metis")
    message = "stopped; nothing was kept, but with -o the same command continues where it ended"
    assert answer.err.split("\n") == [message, "", "error: interrupted", ""]
    assert (answer.status, answer.out) == (130, "")


def test_sigterm_leaves_no_temporary_file(tmp_path):
    words = ["generate", "branched", "--copies", "100000", "-o", "set.jsonl"]
    with subprocess.Popen(
        [sys.executable, "-m", "streamplace", *words], cwd=tmp_path, stderr=subprocess.DEVNULL
    ) as process:
        while process.poll() is None and not list(tmp_path.glob(".streamplace-*")):
            time.sleep(0.05)
        process.terminate()
    assert process.returncode == 130
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_second_ctrl_c_while_processes_start_adds_no_traceback(tmp_path):
    words = ["place", "--placer", "metis", "-o", "answers.jsonl"]
    stopped = on_a_data_set(tmp_path, *words, interrupts="once again")
    assert stopped.returncode == 130
    assert stopped.stderr.startswith("stopped; answers.jsonl holds what is done")
    assert stopped.stderr.endswith("\n\nerror: interrupted\n")
    assert "Traceback" not in stopped.stderr
