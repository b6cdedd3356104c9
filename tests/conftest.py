"""Settings for all tests, and a command line in this process."""

import gc
import os
import re
import signal
import tempfile
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings
from third_parties import Answer

from streamplace.cli.main import main

pytest_plugins = [
    name for name in ("command_fixtures", "engine_fixtures", "flink_fixtures") if find_spec(name)
]

# The same examples every time make a failure reproducible. `make test-all` asks for the thorough
# profile.
settings.register_profile("thorough", deadline=None, derandomize=True, database=None)
settings.register_profile("quick", settings.get_profile("thorough"), max_examples=25)
settings.load_profile("quick")

# Shells start background jobs with SIGINT ignored, and what tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Ray reads it when it is imported: what tests start listens on the loopback interface.
os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")

OF_CRASHES = {signal.SIGILL, signal.SIGABRT, signal.SIGFPE, signal.SIGSEGV, signal.SIGBUS}
"""Signals by which pytest and Ray print where a process crashed."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Groups come first: they take longest, and the processes then share what is left."""
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)


def pytest_collection_finish():
    """Look for garbage seldom, and not in what is there before the first test."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 10)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Let one process run a file whole: what its tests share is made once."""
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling

    class FileScheduling(LoadGroupScheduling):
        """Groups of tests where they are marked, else files."""

        def _split_scope(self, nodeid):
            return super()._split_scope(nodeid).partition("::")[0]

        def remove_node(self, node):
            """Leave to the others what a crashed process has not run, without what crashed it."""
            units = self.assigned_work.pop(node)
            open_tests = [test for tests in units.values() for test in tests if not tests[test]]
            for scope, tests in units.items():
                left = {test: False for test in tests if test in open_tests[1:]}
                if left:
                    self.workqueue[scope] = left
            for other in self.nodes:
                self._reschedule(other)
            return next(iter(open_tests), None)

    return FileScheduling(config, log)


@pytest.fixture(scope="session", autouse=True)
def _surroundings(tmp_path_factory):
    """What tests have of the machine."""
    with pytest.MonkeyPatch.context() as patch:
        # Caches of a user are none of the tests' business, nor the other way round.
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        # Files of tests need not survive a loss of power.
        patch.setattr(os, "fsync", lambda descriptor: None)
        # Clusters of seconds are not worth the second compiler: less than half the CPU without it.
        patch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")
        yield


@pytest.fixture(scope="session")
def _state_homes():
    """A folder for the state of each test, made by what writes it; in memory where that is a disk.

    SQLite waits for the disk at the end of every transaction, as the product asks it to.
    """
    memory = Path("/dev/shm")
    parent = memory if os.access(memory, os.W_OK) else None
    made = tempfile.TemporaryDirectory("", "streamplace-", parent, ignore_cleanup_errors=True)
    with made as folder:  # a command that a test has killed may still write
        yield (Path(folder) / str(number) for number in count())


@pytest.fixture(autouse=True)
def _own_ledger(_state_homes):
    """Nothing was predicted before a test, and a test predicts nothing for the user."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(next(_state_homes)))
        yield


@pytest.fixture(autouse=True)
def _signals_stay_pythons():
    """What is called leaves Python's own handlers: else Ctrl-C ends the process at once."""
    before = _caught_signals() - OF_CRASHES
    yield
    assert not before - _caught_signals()


def _caught_signals():
    """Numbers of the signals that have a handler."""
    status = Path("/proc/self/status")
    if not status.exists():
        return set()
    mask = int(re.search(r"^SigCgt:\s*(\w+)", status.read_text(), re.M)[1], 16)  # type: ignore[index]
    return {number for number in range(1, 32) if mask >> (number - 1) & 1}


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Run a command in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        out, err = capsys.readouterr()
        return Answer(int(stop.value.code or 0), out, err)

    return call


@pytest.fixture
def refusal(run):
    """The line that a command is refused with: exit code 2, nothing printed, nothing written."""

    def call(*words):
        before = contents()
        answer = run(*words)
        assert (answer.status, answer.out) == (2, "")
        assert answer.err.startswith("error: ")
        assert answer.err.count("\n") == 1
        assert contents() == before
        return answer.err

    return call


def contents():
    """What lies in and below the working folder."""
    return {path: path.read_bytes() if path.is_file() else None for path in Path().rglob("*")}
