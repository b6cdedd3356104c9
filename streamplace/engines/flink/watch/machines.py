"""Start and stop TaskManagers by a command of the user, each decision written before it runs.

A TaskManager that is missing is first a device of the model: a copy of one that is there. Where a
plan with such devices pays, the command starts as many, and the watch waits until they join. Then
the job is measured with them, and moved as usual. A TaskManager that a move to fewer has left is
stopped, once no job has a slot on it.
"""

import json
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from tempfile import TemporaryFile
from typing import IO

from streamplace.engines.flink.rest.client import FlinkError, Rest
from streamplace.engines.flink.watch.log import WatchLog
from streamplace.engines.flink.watch.look import JobLook
from streamplace.errors import SettingError
from streamplace.io.watch_store import (
    BEGUN,
    DONE,
    FAILED,
    UNBEGUN,
    StoreError,
    WatchDecision,
    seconds_since,
    utc_now,
)
from streamplace.model.messages import counted, listed, quoted, shown
from streamplace.model.report import duration

START, STOP = "start", "stop"
AGAIN_SECONDS, LONGEST_SECONDS, MOST_DOUBLED = 600.0, 86_400.0, 8
"""Seconds after a start or a stop that failed until the next one. After starts that failed one
after the other they double, up to the longest time: each may have left a machine that costs money.
"""
KILL_SECONDS = 10.0
"""Seconds within which a command that was killed must end."""
MOST_ERRORS = 10_000
"""Last bytes of the errors of a command that are read."""


@dataclass(frozen=True, slots=True)
class MachineCommand:
    """Command that starts and stops TaskManagers."""

    words: tuple[str, ...]  # the command with its first arguments; it is run without a shell
    # Maximum number of seconds for one run; then it is killed with all processes of its group.
    seconds: float

    @classmethod
    def of(cls, text: str, seconds: float) -> "MachineCommand":
        """Split a command as a shell does."""
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise SettingError(f"--machines is {quoted(text)}, not a command: {error}") from None
        if not words or shutil.which(words[0]) is None:
            what = quoted(words[0] if words else text)
            raise SettingError(f"--machines: {what} is no program that can be run")
        return cls(tuple(words), seconds)

    def run(self, *arguments: str) -> str:
        """Run it with further arguments; return why it failed, or nothing.

        Its errors go to a file, because processes that it leaves behind would keep a pipe open.
        """
        what = quoted(shlex.join([*self.words, *arguments]))
        try:
            with TemporaryFile() as errors:
                return self._run(what, [*self.words, *arguments], errors)
        except OSError as error:  # also where no folder has room for the file
            return f"{what} cannot be run: {error.strerror}"

    def _run(self, what: str, words: list[str], errors: IO[bytes]) -> str:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
        try:
            code = process.wait(self.seconds)
        except subprocess.TimeoutExpired:
            end = "was killed" if _kill(process) else "cannot be killed"
            return f"{what} did not end within {self.seconds:g} s, and {end}"
        except BaseException:
            _kill(process)
            raise
        if code == 0:
            return ""
        errors.seek(max(0, errors.seek(0, os.SEEK_END) - MOST_ERRORS))
        lines = errors.read().decode(errors="replace").strip().splitlines()
        return ": ".join([f"{what} ended with exit code {code}", *map(shown, lines[-1:])])


@dataclass(slots=True)
class Machines:
    """TaskManagers that a watch starts and stops."""

    rest: Rest
    log: WatchLog
    command: MachineCommand
    tell: Callable[[str], None]
    spares: Collection[str] = ()  # TaskManagers that are never stopped
    monotonic: Callable[[], float] = time.monotonic  # clock for waiting
    _open: dict[int, tuple[WatchDecision, float]] = field(default_factory=dict, init=False)
    _left: dict[str, float] = field(default_factory=dict, init=False)
    _again: float = field(default=0.0, init=False)
    # Starts that have failed since the last TaskManager joined.
    _in_vain: list[WatchDecision] = field(default_factory=list, init=False)

    def recall(self) -> None:
        """Continue after an earlier process: what it has begun may be done by now."""
        decisions = self.log.decisions
        managers: Collection[str] = ()
        if any(one.kind in (START, STOP) and one.state == BEGUN for one in decisions.values()):
            managers = self._managers()
        for number, one in decisions.items():
            if one.kind == START and one.state == FAILED:
                left = AGAIN_SECONDS - seconds_since(one.at)
                self._again = max(self._again, self.monotonic() + left)
            elif one.kind == START and one.state == BEGUN:
                self._open[number] = one, self.monotonic() + self.command.seconds
            elif one.kind == STOP and one.state == BEGUN:
                state = UNBEGUN if one.transaction in managers else DONE
                self.log.end(number, one, state, "the watch was ended meanwhile", "")
        self._settle(managers)

    @property
    def waits(self) -> str:
        """Reason to wait before anything is moved; empty if there is none."""
        kinds = {decision.kind for decision, _ in self._open.values()}
        if START in kinds:
            return "waits for the TaskManagers that were started"
        return "waits until stopped TaskManagers are gone" if kinds else ""

    @property
    def hold(self) -> str:
        """Return why nothing is started now; empty if something may be."""
        left = self._again - self.monotonic()
        return (
            f"none is started for {duration(left)}, because the last start failed"
            if left > 0
            else ""
        )

    def notice(self, look: JobLook) -> None:
        """Notice which TaskManagers have joined or gone, and which the job uses again."""
        self._settle(look.managers)
        used = {device for devices in look.layout.values() for device in devices}
        self._left = {name: at for name, at in self._left.items() if name not in used}

    def start(self, look: JobLook, like: str, number: int, reason: str) -> None:
        """Start TaskManagers of the kind of one that is there."""
        there = len(look.managers)
        decision = WatchDecision(
            utc_now(),
            START,
            look.job,
            json.dumps(sorted(look.managers)),
            {},
            (there, there + number),
            reason,
        )
        try:
            row = self.log.begin(decision)
        except StoreError as error:
            self.tell(f"warning: {error}; nothing is started without a record")
            return
        for _ in range(number):
            if why := self.command.run(START, like):
                self._failed(row, decision, why)
                return
        self._open[row] = decision, self.monotonic() + self.command.seconds

    def leave(self, job: str, names: Sequence[str]) -> None:
        """Stop TaskManagers that a move has left, except spares."""
        self._left |= {name: self.monotonic() for name in names if name not in self.spares}
        self.stop_left(job)

    def stop_left(self, job: str) -> None:
        """Stop what was left and is still unused, also if that failed some time ago."""
        now = self.monotonic()
        for name in [name for name, due in self._left.items() if due <= now]:
            self._left[name] = now + AGAIN_SECONDS
            with suppress(FlinkError):  # it is asked again then
                self._stop(job, name)

    def _stop(self, job: str, name: str) -> None:
        managers = self._managers()
        if name not in managers or self.rest.holders(name):
            del self._left[name]
            return
        there = len(managers)
        reason = "the job has left it, and no job has a slot on it"
        decision = WatchDecision(utc_now(), STOP, job, name, {}, (there, there - 1), reason)
        try:
            row = self.log.begin(decision)
        except StoreError as error:
            self.tell(f"warning: {error}; nothing is stopped without a record")
            return
        if why := self.command.run(STOP, name):
            self._failed(row, decision, why)
        else:
            self._open[row] = decision, self.monotonic() + self.command.seconds

    def _managers(self) -> frozenset[str]:
        return frozenset(row["id"] for row in self.rest.task_managers())

    def _settle(self, managers: Collection[str]) -> None:
        """Note the outcomes of what was begun, as far as there are some."""
        if any(_joined(one, managers) for one in self._in_vain):
            self._in_vain.clear()
            self._again = min(self._again, self.monotonic() + AGAIN_SECONDS)
        for row, (decision, deadline) in [*self._open.items()]:
            is_start, name = decision.kind == START, decision.transaction
            done = _joined(decision, managers) if is_start else sorted({name}.difference(managers))
            wanted = abs(decision.machines[1] - decision.machines[0])
            if len(done) >= wanted:
                words = f"{listed(done)} {'joined' if is_start else 'is stopped'}"
                self.log.end(row, decision, DONE, words, "")
                self.tell(words)
                self._left.pop(name, None)
                del self._open[row]
            elif self.monotonic() >= deadline:
                within = f"within {self.command.seconds:g} s after the command"
                why = f"only {len(done)} of {wanted} joined {within}"
                self._failed(row, decision, why if is_start else f"it did not go {within}")

    def _failed(self, row: int, decision: WatchDecision, why: str) -> None:
        """Note and tell that a start or a stop has failed, and wait before the next one."""
        self._open.pop(row, None)
        self.log.end(row, decision, FAILED, why, "")
        if decision.kind == STOP:
            name, pause = quoted(decision.transaction), duration(AGAIN_SECONDS)
            self.tell(f"{name} is not stopped: {why}; tried again after {pause}, if it is unused")
            return
        wait = min(LONGEST_SECONDS, AGAIN_SECONDS * 2.0 ** min(len(self._in_vain), MOST_DOUBLED))
        self._again = self.monotonic() + wait
        self._in_vain.append(decision)
        what = counted(decision.machines[1] - decision.machines[0], "TaskManager")
        self.tell(f"the start of {what} failed: {why}; nothing is started for {duration(wait)}")


def _joined(decision: WatchDecision, managers: Collection[str]) -> list[str]:
    """TaskManagers that were not there when a start was decided."""
    return sorted(set(managers).difference(json.loads(decision.transaction)))


def _kill(process: "subprocess.Popen[bytes]") -> bool:
    """Kill a command with all processes of its group; return whether it has ended.

    Those of another user, as under sudo, cannot be killed.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    try:
        process.wait(KILL_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return True
