"""Runs of placers and programs on entries of the library, within limits, on one core."""

import json
import shlex
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import ConfigDict

from streamplace.errors import FormatError, SettingError, StreamplaceError
from streamplace.io.fields import STRICT, Finite
from streamplace.io.files import (
    appending,
    is_file,
    make_folder,
    read_bytes,
    read_lines,
    spot,
    write_text,
)
from streamplace.io.parsing import parse_as
from streamplace.io.placements import read_placement
from streamplace.io.problems import write_problem
from streamplace.library.confined import MAX_PRINTED, MEMORY, ResourceUsage, RunLimits, confined
from streamplace.library.documents import ObjectiveName, solution_document
from streamplace.library.folder import Library, LibraryEntry, open_library
from streamplace.model.message_text import quoted, shown
from streamplace.model.problem import Problem
from streamplace.model.units import format_bytes
from streamplace.objectives.registry import OBJECTIVES, Objective

GRACE_S = 10.0
"""Time that a run may take in addition to its search, to start and to read and write files."""
COMPILATION_S = 600.0
"""Time limit of a placer's unmeasured first run, which compiles its kernels."""
START = b'{"instance": '
"""Beginning of every line of results."""
PLACEHOLDERS = ("problem", "answer", "objective", "seconds", "seed")
NEEDED = ("problem", "answer")
RunStatus = Literal["answered", "time", "failed", "illegal"]


@dataclass(frozen=True, slots=True)
class Method:
    """A placer or a program that is measured on the library.

    Attributes
    ----------
    name
        Name in results and tables.
    words
        Command, in which the names in `PLACEHOLDERS` stand in braces.
    command
        Command of a program as it was typed; empty for a placer.
    """

    name: str
    words: tuple[str, ...]
    command: str = ""

    def call(
        self, problem: Path, answer: Path, objective: str, seconds: float, seed: int
    ) -> list[str]:
        """Command of one run.

        >>> method = program_method("mine=./mine {problem} {answer} --seed {seed}")
        >>> method.call(Path("p.json"), Path("a.json"), "makespan", 1.0, 7)
        ['./mine', 'p.json', 'a.json', '--seed', '7']
        """
        values = (str(problem), str(answer), objective, f"{seconds:g}", str(seed))
        words = list(self.words)
        for name, value in zip(PLACEHOLDERS, values, strict=True):
            words = [word.replace(f"{{{name}}}", value) for word in words]
        return words


def placer_method(placer: str) -> Method:
    """Method of a registered placer, with options after colons.

    >>> placer_method("anneal").words[1:4]
    ('-P', '-m', 'streamplace.library.placer_program')
    """
    # -P: no modules from the working folder, which may be untrusted
    program = (sys.executable, "-P", "-m", "streamplace.library.placer_program", placer)
    return Method(placer, (*program, *(f"{{{name}}}" for name in PLACEHOLDERS)))


def program_method(text: str) -> Method:
    """Method of a program: ``NAME=COMMAND``, or a command that is named after its first word.

    It reads a problem file and writes a placement file.

    >>> program_method("mine=python mine.py {problem} {answer}").name
    'mine'
    >>> program_method("bin/mine {problem} {answer}").name
    'mine'
    """
    name, equals, command = text.partition("=")
    if not equals or not name.strip() or set(name) & set(" /{}'\""):
        words = text.split()
        name, command = Path(words[0]).name if words else "", text
    if missing := [key for key in NEEDED if f"{{{key}}}" not in command]:
        raise SettingError(
            f"the command {quoted(command)} lacks {{{missing[0]}}}; write it as in "
            "'./mine {problem} {answer}'"
        )
    try:
        return Method(name.strip(), tuple(shlex.split(command)), command)
    except ValueError as error:
        raise SettingError(
            f"the command {quoted(command)} cannot be read: {error}; correct the quotes"
        ) from None


def methods_of(placers: Iterable[str], commands: Iterable[str]) -> list[Method]:
    """Methods of placers and commands; each must have a different name."""
    from streamplace.placers.named import named_placer

    methods = []
    for placer in placers:
        named_placer(placer)  # an unknown one is refused
        methods.append(placer_method(placer))
    methods += map(program_method, commands)
    names = [method.name for method in methods]
    if not methods:
        raise SettingError("there is nothing to run; name a placer or a command")
    if repeated := [name for name in names if names.count(name) > 1]:
        raise SettingError(
            f"two methods are called {quoted(repeated[0])}; leave one out, or name a command by "
            "NAME=COMMAND"
        )
    return methods


@dataclass(frozen=True, slots=True)
class LibraryRun:
    """One run of a method on an entry.

    Attributes
    ----------
    method
        Name of the placer or program.
    limit
        Time limit of the search in seconds.
    digest
        SHA-256 of the instance's file.
    value
        Value of the answer; None without a legal answer.
    status
        ``answered``, or the reason why there is no answer: a limit, a program that failed, or a
        placement that is unreadable or breaks a rule.
    seconds, elapsed, memory
        Processor time of the run, elapsed time, and bytes of memory of its largest process.
    command, memory_limit
        Command of a program, empty for a placer, and memory limit of the run in bytes; both tell
        whether another run of this name is the same.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    instance: str
    objective: ObjectiveName
    digest: str
    method: str
    limit: Finite
    seed: int
    status: RunStatus
    value: Finite | None
    seconds: Finite
    elapsed: Finite
    memory: int
    error: str | None = None
    command: str = ""
    memory_limit: int | None = None

    @property
    def key(self) -> tuple[str, str, str, str, float, int]:
        """Key that identifies a run."""
        return self.instance, self.objective, self.digest, self.method, self.limit, self.seed


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Runs of methods on entries."""

    methods: Sequence[Method]
    entries: Sequence[LibraryEntry]
    # Time limits of the search; each method runs once with each of them.
    seconds: Sequence[float] = (1.0,)
    memory: int = MEMORY  # memory limit of a run in bytes
    seed: int = 0
    # Folder for the answers, as files for ``submit``; None to discard them.
    solutions: Path | None = None

    def __post_init__(self) -> None:
        for seconds in self.seconds:
            RunLimits(seconds, self.memory)

    @property
    def n_runs(self) -> int:
        """Number of runs."""
        return len(self.methods) * len(self.placed) * len(self.seconds)

    @property
    def placed(self) -> list[LibraryEntry]:
        """Entries with an objective of placers; the others are plans."""
        return [entry for entry in self.entries if entry.objective in OBJECTIVES]

    def answer_file(self, instance: str, objective: str, method: Method) -> Path | None:
        """File of the best answer of a method; None if answers are discarded."""
        if self.solutions is None:
            return None
        plain = "".join(c if c.isalnum() or c in "-_" else "-" for c in method.name)
        return self.solutions / f"{instance}.{objective}.{plain}.json"


def run(
    placers: Iterable[str] = (),
    commands: Iterable[str] = (),
    *,
    instances: Iterable[str] = (),
    families: Iterable[str] = (),
    sizes: Iterable[str] = (),
    objective: str | None = None,
    seconds: float | Sequence[float] = 1.0,
    memory: int = MEMORY,
    seed: int = 0,
    out: str | PathLike[str] | None = None,
    solutions: str | PathLike[str] | None = None,
    library: str | PathLike[str] | None = None,
) -> list[LibraryRun]:
    """Run placers and programs on entries of the library, each on one core within limits.

    Parameters
    ----------
    placers
        Placers, with options after colons.
    commands
        Programs, as ``"NAME=COMMAND"``: the command contains ``{problem}`` and ``{answer}``, and
        may contain ``{objective}``, ``{seconds}`` and ``{seed}``.
    instances, families, sizes, objective
        Selection of entries, as for `Library.select`.
    seconds
        Processor time of a search; several values give several runs. A run that exceeds it by ten
        seconds is ended, with the processes of its group.
    memory
        Memory limit for each process of a run, in bytes.
    out
        File of JSON lines. Runs that it has are not repeated; new ones are appended.
    solutions
        Folder for the answers, which ``submit`` accepts; the best one of each method and entry.
    library
        Folder of the library.

    Examples
    --------
    >>> from streamplace.library import run
    >>> (record,) = run(["metis"], instances=["random-00"], objective="throughput")
    >>> record.status
    'answered'
    """
    opened = open_library(library)
    plan = RunPlan(
        methods_of(placers, commands),
        opened.select(instances, families=families, sizes=sizes, objective=objective),
        (float(seconds),) if isinstance(seconds, int | float) else tuple(seconds),
        memory,
        seed,
        None if solutions is None else Path(solutions),
    )
    return list(runs(opened, plan, None if out is None else Path(out)))


def runs(library: Library, plan: RunPlan, out: Path | None = None) -> Iterator[LibraryRun]:
    """Run the runs that a file of results lacks, and yield all runs of the plan."""
    if plan.entries and not plan.placed:
        raise SettingError("these entries are plans, which no placer makes; choose others")
    if plan.solutions is not None:
        make_folder(plan.solutions)
    if out is None:
        yield from (record for _, record in _planned(library, plan, {}))
        return
    with appending(out, START) as append:
        for is_new, record in _planned(library, plan, {r.key: r for r in read_runs(out)}):
            if is_new:
                line = json.dumps(asdict(record), ensure_ascii=False) + "\n"
                append(line.encode())
            yield record


def read_runs(path: Path) -> list[LibraryRun]:
    """Runs of a file of JSON lines."""
    return [
        parse_as(LibraryRun, line, f"{spot(path)}:{number}") for number, line in read_lines(path)
    ]


def read_all_runs(paths: Iterable[Path]) -> list[LibraryRun]:
    """Runs of several files; of those that are in them repeatedly, the last."""
    return list({run.key: run for path in paths for run in read_runs(path)}.values())


def _planned(
    library: Library, plan: RunPlan, present: dict[Any, LibraryRun]
) -> Iterator[tuple[bool, LibraryRun]]:
    """Runs of a plan, instance by instance, with whether each is new."""
    compiled = set[tuple[str, str]]()
    for entry in plan.placed:
        digest, problem = library.digest(entry.instance), None
        for method in plan.methods:
            for seconds in plan.seconds:
                key = entry.instance, entry.objective, digest, method.name, seconds, plan.seed
                if key in present and _holds(present[key], method, plan):
                    yield False, present[key]
                    continue
                problem = problem or library.problem(entry.instance)
                if not method.command and (method.name, entry.objective) not in compiled:
                    _compile(plan, method, entry, problem)
                    compiled.add((method.name, entry.objective))
                yield True, _run(plan, method, entry, problem, digest, seconds)


def _holds(known: LibraryRun, method: Method, plan: RunPlan) -> bool:
    """Whether a known run has everything that is wanted, such as its answer.

    Raises SettingError if it was made by another command or with another limit.
    """
    if known.command and known.command != method.command:
        raise SettingError(
            f"the file has runs of {quoted(method.name)} by the command {quoted(known.command)}; "
            "name yours differently, as in NAME=COMMAND, or give another file"
        )
    if known.memory_limit not in (None, plan.memory):
        raise SettingError(
            f"the file has runs of {quoted(method.name)} with another memory limit, "
            f"{format_bytes(known.memory_limit or 0)}; give that, or another file"
        )
    file = plan.answer_file(known.instance, known.objective, method)
    return known.status != "answered" or file is None or is_file(file)


def _compile(plan: RunPlan, method: Method, entry: LibraryEntry, problem: Problem) -> None:
    """Run a placer once, so that its kernels are compiled and cached before it is measured."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_problem(problem, folder / "problem.json")
        command = method.call(
            folder / "problem.json", folder / "answer.json", entry.objective, 0.01, 0
        )
        confined(command, RunLimits(COMPILATION_S, plan.memory), folder=Path.cwd())


def _run(
    plan: RunPlan,
    method: Method,
    entry: LibraryEntry,
    problem: Problem,
    digest: str,
    seconds: float,
) -> LibraryRun:
    """Run a method once."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        answer = folder / "answer.json"
        write_problem(problem, folder / "problem.json")
        with (folder / "errors").open("w+b") as errors:
            command = method.call(
                folder / "problem.json", answer, entry.objective, seconds, plan.seed
            )
            limits = RunLimits(seconds + GRACE_S, plan.memory)
            usage = confined(command, limits, folder=Path.cwd(), stderr=errors)
            file = plan.answer_file(entry.instance, entry.objective, method)
            status, value, error = _outcome(method, entry, problem, answer, usage, file)
            if status == "failed":
                error = _last_line(errors) or error
    return LibraryRun(
        entry.instance,
        entry.objective,
        digest,
        method.name,
        seconds,
        plan.seed,
        status,
        value,
        round(usage.seconds, 3),
        round(usage.elapsed, 3),
        usage.memory,
        error,
        method.command,
        plan.memory,
    )


def _outcome(
    method: Method,
    entry: LibraryEntry,
    problem: Problem,
    answer: Path,
    usage: ResourceUsage,
    file: Path | None,
) -> tuple[RunStatus, float | None, str | None]:
    """Status, value and error of a run; an answer counts that was written before the time limit.

    Values are those of the objective, which agree with the checker's to twelve digits. Answers are
    kept in ``file``.
    """
    if usage.status and not usage.timed_out:
        return "failed", None, f"exit status {usage.status}"
    if not is_file(answer):
        return ("time", None, None) if usage.timed_out else ("failed", None, "it wrote no answer")
    try:
        placement = read_placement(answer, problem)
        problem.check(placement)
        judge = OBJECTIVES[entry.objective]
        value = float(judge.value(problem, placement))
    except StreamplaceError as error:
        if isinstance(error, FormatError) and usage.timed_out:
            return "time", None, None  # it was ended while it wrote the file
        reason = str(error).replace(str(answer), "the answer")
        return "illegal", None, shown(reason, 300)
    if file is not None:
        document = solution_document(problem, placement, judge)
        document |= {"objective": judge.name, "value": value, "placer": method.name}
        _keep_better(file, {**document, "graph": entry.instance}, judge)
    return "answered", value, None


def _keep_better(file: Path, document: dict[str, Any], judge: Objective) -> None:
    """Write an answer, unless the file has one with a value at least as good."""
    try:
        present = json.loads(read_bytes(file))["value"] if is_file(file) else None
    except (FormatError, ValueError, KeyError, TypeError):
        present = None
    if not isinstance(present, float) or judge.better(document["value"], present):
        write_text(file, json.dumps(document, ensure_ascii=False) + "\n")


def _last_line(errors: Any) -> str:
    """Last line that a program printed on stderr."""
    errors.seek(0, 2)
    errors.seek(max(0, errors.tell() - MAX_PRINTED))
    lines = errors.read().decode(errors="replace").strip().splitlines()
    return shown(lines[-1], 300) if lines else ""
