"""Sampling the stacks of Java processes, with tools of a JDK that are scripts."""

import os
from pathlib import Path

import pytest

from streamplace.engines.flink.cpu import flight_recorder
from streamplace.engines.flink.cpu.flight_recorder import sampled_stacks
from streamplace.engines.flink.cpu.stack_samples import read_stacks

SAMPLES = Path(__file__).parents[1] / "golden/flink-stacks/samples.txt"
FLAGS = "bool DebugNonSafepoints   = {}   {{diagnostic}}"
START = f"""case "$2" in JFR.start) echo "Started recording 1.";;
  VM.flags) echo '{FLAGS.format("true")}';; esac"""


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of the tools; this process stands for a TaskManager."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(flight_recorder, "local_task_managers", lambda: [os.getpid()])
    script(tmp_path / "jcmd", f'echo "$@" >> {tmp_path}/asked\n{START}')
    script(tmp_path / "jfr", f"cat {SAMPLES}")
    return tmp_path


def script(path: Path, text: str) -> None:
    """Write a program of the shell."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def asked(tools: Path) -> list[str]:
    """Commands for the process, without its number and their options."""
    return [line.split()[1] for line in (tools / "asked").read_text().splitlines()]


def test_samples_are_those_of_the_block(tools: Path) -> None:
    """A recording is started and stopped once, and has a name of its own and an end."""
    with sampled_stacks({"dev-0": os.getpid()}) as stop:
        assert asked(tools) == ["VM.flags", "JFR.start"]
        stacks = stop()
    assert stacks == {"dev-0": read_stacks(SAMPLES.read_text().splitlines())}
    assert asked(tools) == ["VM.flags", "JFR.start", "JFR.stop"]
    _, start, end = (line.split() for line in (tools / "asked").read_text().splitlines())
    assert start[-1] == end[-1]
    assert "duration=30s" in start


@pytest.mark.parametrize("flags", [FLAGS.format("false"), "", "-XX:-DebugNonSafepoints"])
def test_java_that_tells_places_at_safepoints_alone_is_not_sampled(tools: Path, flags: str) -> None:
    """Samples in a loop would count for the call that follows it."""
    script(tools / "jcmd", f'echo "$@" >> {tools}/asked\necho "{flags}"')
    with sampled_stacks({"dev-0": os.getpid()}) as stop:
        assert stop() == {}
    assert asked(tools) == ["VM.flags"]


def test_a_block_that_fails_ends_the_sampling(tools: Path) -> None:
    """Nothing goes on in the TaskManager."""
    with pytest.raises(ZeroDivisionError), sampled_stacks({"dev-0": os.getpid()}):
        raise ZeroDivisionError
    assert asked(tools) == ["VM.flags", "JFR.start", "JFR.stop"]


HANGS = "exec sleep 60"


@pytest.mark.parametrize("tool", ["jcmd", "jfr"])
@pytest.mark.parametrize("text", ["exit 1", "echo nothing of use", r"printf '\377\000'", HANGS])
def test_tools_that_fail_or_hang_give_no_samples(
    tools: Path, monkeypatch: pytest.MonkeyPatch, tool: str, text: str
) -> None:
    """As those of older versions of Java do, and those that belong to somebody else."""
    if text == HANGS:  # a profile does not wait for them
        monkeypatch.setattr(flight_recorder, "PATIENCE_SECONDS", 0.2)
    script(tools / tool, text)
    with sampled_stacks({"dev-0": os.getpid()}) as stop:
        assert stop() == {}


def test_processes_that_are_no_task_managers_are_not_asked(
    tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One may have ended, and its number be that of another process."""
    monkeypatch.setattr(flight_recorder, "local_task_managers", list)
    with sampled_stacks({"dev-0": os.getpid()}) as stop:
        assert stop() == {}
    assert not (tools / "asked").exists()
