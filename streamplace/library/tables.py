"""Tables of the library: its entries, one instance, and results of methods for every time limit."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from math import exp, log
from os import PathLike
from pathlib import Path
from typing import Any

from streamplace.display.report import Brief, Detail, Heading, Report, Sheet, duration, percent
from streamplace.errors import SettingError
from streamplace.library.folder import Library, LibraryEntry, class_of, open_library
from streamplace.library.runs import LibraryRun, read_all_runs
from streamplace.model.message_text import counted, shown
from streamplace.objectives.registry import OBJECTIVES

ENTRY_HEAD = ("entry", "class", "size", "operators", "devices", "value", "bound", "gap", "proof")
BRIEF_HEAD = ("entry", "size", "value", "bound", "gap")
MAX_LISTED = 20
"""Entries that a terminal lists one by one; of more it lists the classes."""
PROOFS = {
    "trivial": "no relative throughput exceeds 1",
    "dual": "multipliers of a linear relaxation, evaluated in exact fractions",
    "search": "an enumeration that the checker repeats",
    "path": "the longest path of least times",
    "interval": "work between the paths before and after it",
}
SHIFT = 0.01
"""Shift of gaps in their geometric mean, so that gaps of 0 count."""
SOLVED = 1e-6
"""Gap to the best known value up to which an entry counts as solved."""
METHOD_HEAD = (
    "method", "time limit", "answers", "solved", "ratio to best", "ratio to bound",
    "gap to best", "gap to bound", "time used",
)  # fmt: skip
LEGEND = (
    "solved: share of the entries on which the method reaches the best known value. Ratios are "
    "geometric means over the entries that it answered, 1 is the best. Gaps are shifted geometric "
    "means over all entries: 0 is the best, and an entry without an answer counts as 100 %. The "
    "time limit is for the search; the time used includes the start of the program and its "
    "reading, in processor seconds on one core."
)


def value_text(objective: str, value: float) -> str:
    """Format a value of an objective with its unit.

    >>> value_text("throughput", 0.83899), value_text("makespan", 0.00020067)
    ('83.9 %', '200.7 µs')
    """
    return OBJECTIVES[objective].format(value) if objective in OBJECTIVES else f"{value:.6g}"


def exact_text(objective: str, value: float) -> str:
    """Format a value of an objective in twelve digits with its unit.

    >>> exact_text("throughput", 0.71588110646), exact_text("makespan", 0.00020067236)
    ('0.71588110646', '0.00020067236 s')
    """
    unit = OBJECTIVES[objective].unit if objective in OBJECTIVES else ""
    return f"{value:.12g} {unit}".rstrip()


def gap_text(entry: LibraryEntry) -> str:
    """Format the gap of an entry; 0 if it is closed."""
    return "0" if entry.closed else f"{100 * entry.gap:.2f} %"


def entry_document(library: Library, entry: LibraryEntry) -> dict[str, Any]:
    """Details of an entry, as ``list --json`` prints them."""
    instance = library.instance(entry.instance)
    return {
        **entry.document(),
        "gap": entry.gap,
        "size": entry.size,
        "class": class_of(entry.instance),
        "operators": instance.operators,
        "devices": instance.devices,
        "origin": instance.origin,
        "split": library.manifest.split,
    }


def entries_report(library: Library, entries: Iterable[LibraryEntry]) -> Report:
    """Table of entries."""
    chosen = tuple(entries)
    rows = tuple(_entry_row(library, entry) for entry in chosen)
    closed = sum(entry.closed for entry in chosen)
    instances = len({entry.instance for entry in chosen})
    brief = Sheet(
        BRIEF_HEAD, tuple(tuple(row[ENTRY_HEAD.index(name)] for name in BRIEF_HEAD) for row in rows)
    )
    return Report(
        (
            Brief(brief if len(rows) <= MAX_LISTED else _classes_sheet(library, chosen)),
            Detail(Sheet(ENTRY_HEAD, rows, names=0)),
            f"{counted(instances, 'instance')}, {counted(len(chosen), 'solution')}; for {closed} "
            "the bound proves that no placement is better",
        )
    )


def _classes_sheet(library: Library, entries: Iterable[LibraryEntry]) -> Sheet:
    """Classes of entries: their number, how many are proven, and their sizes."""
    classes: defaultdict[str, list[LibraryEntry]] = defaultdict(list)
    for entry in entries:
        classes[class_of(entry.instance)].append(entry)
    rows = []
    for name, group in classes.items():
        instances = [library.instance(entry.instance) for entry in group]
        sizes = [[each.operators for each in instances], [each.devices for each in instances]]
        spans = (" to ".join(map(str, sorted({min(size), max(size)}))) for size in sizes)
        rows.append((name, str(len(group)), str(sum(e.closed for e in group)), *spans))
    return Sheet(("class", "solutions", "proven the best", "operators", "devices"), tuple(rows))


def _entry_row(library: Library, entry: LibraryEntry) -> tuple[str, ...]:
    instance = library.instance(entry.instance)
    return (
        entry.name,
        class_of(entry.instance),
        entry.size,
        str(instance.operators),
        str(instance.devices),
        value_text(entry.objective, entry.value),
        value_text(entry.objective, entry.bound),
        gap_text(entry),
        entry.proof,
    )


def instance_report(library: Library, name: str) -> Report:
    """Details of one instance: origin, and best known value and bound of every objective."""
    instance = library.instance(name)
    size = f"{counted(instance.operators, 'operator')} on {counted(instance.devices, 'device')}"
    parts: list[str | Heading] = [
        Heading(name, f": {size}; origin: {instance.origin or 'not stated'}")
    ]
    for entry in library.select([name]):
        parts += _entry_sentences(entry)
    parts.append(f"Files: {library.folder / name}")
    return Report(tuple(parts))


def _entry_sentences(entry: LibraryEntry) -> list[str]:
    value, bound = (value_text(entry.objective, x) for x in (entry.value, entry.bound))
    best = f"{entry.objective}: {value} is the best known value, by {entry.by}"
    best += "" if entry.seconds is None else f" in {duration(entry.seconds)} on one core"
    best += "" if entry.date is None else f", {entry.date}"
    verdict = "the best possible" if entry.closed else f"gap {gap_text(entry)}"
    proof = PROOFS.get(entry.proof, entry.proof)
    if entry.proof_seconds is not None:
        proof += f", made and checked in {duration(entry.proof_seconds)}"
    return [
        f"{best}.",
        f"Bound: no placement is better than {bound} ({verdict}); certificate: {proof}.",
    ]


@dataclass(frozen=True, slots=True)
class MethodSummary:
    """Results of a method with a time limit.

    Attributes
    ----------
    entries, answers
        Number of entries, and of legal answers.
    solved
        Share of the entries on which it reaches the best known value.
    ratio_to_best, ratio_to_bound
        Geometric means of value ratios over the answers, 1 is best; None without answers.
    gap_to_best, gap_to_bound
        Shifted geometric means of gaps over all entries; an entry without an answer has gap 1.
    seconds
        Mean processor time.
    """

    method: str
    limit: float
    entries: int
    answers: int
    solved: float
    ratio_to_best: float | None
    ratio_to_bound: float | None
    gap_to_best: float
    gap_to_bound: float
    seconds: float


def gap_between(entry: LibraryEntry, value: float | None, reference: float) -> float:
    """Distance of a value from a reference that is not worse, as a share of the larger one.

    >>> entry = LibraryEntry("a-0", "makespan", 2.0, 1.6, False, "path", "me")
    >>> gap_between(entry, 2.5, entry.value), gap_between(entry, None, entry.value)
    (0.2, 1.0)
    """
    if value is None:
        return 1.0
    largest = max(abs(value), abs(reference))
    return min(1.0, max(0.0, entry.sense * (reference - value) / largest)) if largest else 0.0


def current_runs(library: Library, runs: Iterable[LibraryRun]) -> list[LibraryRun]:
    """Runs on the instances of the library, without those on other versions of them."""
    entries = {(entry.instance, entry.objective) for entry in library.entries}
    digests = dict[str, str]()
    chosen = []
    for run in runs:
        if (run.instance, run.objective) not in entries:
            raise SettingError(
                f"the results are for {shown(run.instance)}/{run.objective}, which the library "
                "does not have; name its folder with --library"
            )
        if run.instance not in digests:
            digests[run.instance] = library.digest(run.instance)
        if run.digest == digests[run.instance]:
            chosen.append(run)
    return chosen


def summaries(library: Library, runs: Iterable[LibraryRun]) -> list[MethodSummary]:
    """Summaries of methods and time limits, best first, of the runs that `current_runs` leaves."""
    entries = {(entry.instance, entry.objective): entry for entry in library.entries}
    groups: dict[tuple[str, float], list[tuple[LibraryEntry, LibraryRun]]] = defaultdict(list)
    for run in runs:
        entry = entries[run.instance, run.objective]
        groups[run.method, run.limit].append((entry, run))
    tried = {key: {(run.instance, run.objective) for _, run in own} for key, own in groups.items()}
    every = set().union(*tried.values())
    rows = [_summary(*key, pairs, len(every - tried[key])) for key, pairs in groups.items()]
    return sorted(rows, key=lambda row: (row.gap_to_best, row.limit, row.method))


def table(
    results: Iterable[str | PathLike[str]], *, library: str | PathLike[str] | None = None
) -> Report:
    """Compare methods by files of results of ``run``.

    ``print`` shows the report, its ``save`` writes a page, and `as_markdown` one in Markdown.

    Parameters
    ----------
    results
        Paths of files that ``run`` has written.
    library
        Folder of the library.
    """
    return table_report(open_library(library), read_all_runs(map(Path, results)))


def table_report(library: Library, runs: Sequence[LibraryRun]) -> Report:
    """Report that compares methods, by objective."""
    if not runs:
        raise SettingError("there are no results; make some with: streamplace library run")
    current = current_runs(library, runs)
    if not current:
        raise SettingError(
            "all results are for other versions of the instances; make new ones with: streamplace "
            "library run"
        )
    parts: list[str | Sheet] = []
    for objective in sorted({run.objective for run in current}, reverse=True):
        chosen = [run for run in current if run.objective == objective]
        instances = {run.instance for run in chosen}
        entries = library.select(instances, objective=objective)
        closed = sum(entry.closed for entry in entries)
        noun = "entry" if len(entries) == 1 else "entries"
        parts.append(
            f"{objective.capitalize()}: {len(entries)} {noun}; the best known value is proven to "
            f"be the best possible for {closed}."
        )
        rows = tuple(_method_row(row) for row in summaries(library, chosen))
        parts.append(Sheet(METHOD_HEAD, rows, names=0))
    if left_out := len(runs) - len(current):
        parts.append(f"Left out: {counted(left_out, 'run')} on other versions of the instances.")
    return Report((*parts, LEGEND))


def as_markdown(report: Report, title: str) -> str:
    """Convert a report to a page in Markdown."""
    lines = [f"# {title}", ""]
    for part in report.all_parts:
        if isinstance(part, Sheet):
            lines += [_line(part.head), _line(["---"] * len(part.head))]
            lines += [_line(map(str, row)) for row in part.rows]
        else:
            lines.append(str(part))
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _method_row(row: MethodSummary) -> tuple[str, ...]:
    ratios: list[float | None] = [row.ratio_to_best, row.ratio_to_bound]
    return (
        row.method,
        f"{row.limit:g} s",
        f"{row.answers} of {row.entries}",
        percent(row.solved),
        *("—" if ratio is None else f"{ratio:.3f}" for ratio in ratios),
        percent(row.gap_to_best),
        percent(row.gap_to_bound),
        f"{row.seconds:.1f} s",
    )


def _summary(
    method: str, limit: float, pairs: Sequence[tuple[LibraryEntry, LibraryRun]], missing: int
) -> MethodSummary:
    """Summary of a method; ``missing`` entries, which others ran on, count as without an answer."""
    none = [1.0] * missing
    to_best = [*(gap_between(entry, run.value, entry.value) for entry, run in pairs), *none]
    to_bound = [*(gap_between(entry, run.value, entry.bound) for entry, run in pairs), *none]
    answered = [*(run.value is not None for _, run in pairs), *(False for _ in none)]
    return MethodSummary(
        method,
        limit,
        len(answered),
        sum(answered),
        sum(gap <= SOLVED for gap in to_best) / len(answered),
        _ratio(to_best, answered),
        _ratio(to_bound, answered),
        _shifted_mean(to_best),
        _shifted_mean(to_bound),
        sum(run.seconds for _, run in pairs) / len(pairs),
    )


def _ratio(gaps: Sequence[float], answered: Sequence[bool]) -> float | None:
    """Geometric mean of ratios, at most a million each."""
    logs = [-log(max(1 - gap, 1e-6)) for gap, counts in zip(gaps, answered, strict=True) if counts]
    return exp(sum(logs) / len(logs)) if logs else None


def _shifted_mean(gaps: Sequence[float]) -> float:
    """Geometric mean of the shifted gaps, minus the shift."""
    return exp(sum(log(gap + SHIFT) for gap in gaps) / len(gaps)) - SHIFT


def summaries_document(library: Library, runs: Sequence[LibraryRun]) -> list[dict[str, Any]]:
    """Summaries as a JSON document, by objective."""
    current = current_runs(library, runs)
    objectives = sorted({run.objective for run in current}, reverse=True)
    return [
        {"objective": objective, **asdict(row)}
        for objective in objectives
        for row in summaries(library, [run for run in current if run.objective == objective])
    ]
