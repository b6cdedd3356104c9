"""Tables of the library: its entries, and one instance."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from streamplace.display.report import Brief, Detail, Heading, Report, Sheet, duration
from streamplace.library.folder import Library, LibraryEntry, class_of
from streamplace.model.message_text import counted
from streamplace.objectives.registry import OBJECTIVES

ENTRY_HEAD = ("entry", "class", "size", "operators", "devices", "value", "bound", "gap", "proof")
BRIEF_HEAD = ("entry", "size", "value", "bound", "gap")
MAX_LISTED = 20
"""Most entries that a terminal lists one by one; if there are more, it lists their classes."""
PROOFS = {
    "trivial": "no relative throughput exceeds 1",
    "search": "an enumeration that the checker repeats",
}


def value_text(objective: str, value: float) -> str:
    """Format a value of an objective with its unit.

    >>> value_text("throughput", 0.83899), value_text("makespan", 0.00020067)
    ('83.9 %', '200.7 µs')
    """
    return OBJECTIVES[objective].format(value) if objective in OBJECTIVES else f"{value:.6g}"


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
