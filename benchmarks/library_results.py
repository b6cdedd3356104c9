"""Results on the library: all placers and foreign programs; makes docs/library-results.md.

    python benchmarks/library_results.py [--peers FOLDER] [--saga PYTHON] [--entries 10 5] [-o PAGE]

FOLDER has the packages kahip and mtkahypar (pip install --target FOLDER kahip mtkahypar), PYTHON is
an interpreter with anrg-saga; what is not given is left out. Results are added to --results, so
that the command continues where it was interrupted.
"""

import argparse
import hashlib
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from streamplace.library import open_library
from streamplace.library.entries import LibraryEntry
from streamplace.library.folder import Library
from streamplace.library.methods import Method, PlacerMethod, named_program
from streamplace.library.runs import GRACE, LibraryRun, RunPlan, runs
from streamplace.library.tables import SAME, as_markdown, summarise, table_report
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.registry import PLACERS

PROGRAMS = Path(__file__).parent / "library_programs"
LEAST_OPERATORS = 7
"""Smaller instances are solved by everybody."""
LEFT_OUT = ("single", "round-robin")
PAGE = """\
This page compares placers of streamplace with programs of other projects on {entries} entries of
[the library](library.md): {throughput} of relative throughput and {makespan} of makespan, which are
spread evenly over the public instances of at least {least} operators. An entry is an instance and
an objective; it has a best known value and a bound that no placement beats. For {closed} of the
{entries} entries the two are equal, so the best known value is proven to be the best possible.

{verdicts}
{better}
Each method had {limit:g} s of processor time for its search on one core ({processor}), and was
ended after {killed:g} s with its start and its reading. The seed is 0. Values were computed from
the placement that a method wrote, so nothing depends on what a program states.

Placers are named as in [the reference](reference/placers.md). METIS, KaHIP and Mt-KaHyPar cut the
graph into parts as large as the devices are fast; they know neither links nor an order. SAGA's
schedulers assume that a device is as fast for all operators; "SAGA-all" takes the shortest of
their schedules. CP-SAT is a plain model in OR-tools with one variable for every operator and device
and for every stream and pair of devices. These programs are in `benchmarks/library_programs`, read
and write files only, and move an operator that may not run where they put it to the device that is
fastest for it.
"""


def methods(objective: str, placers: str, peers: str, saga: str) -> Iterator[Method]:
    """Everything that places for an objective."""
    for name in placers.split(",") if placers else PLACERS:
        if PLACERS[name].judges(OBJECTIVES[objective]) and name not in LEFT_OUT:
            yield PlacerMethod(name)
    python, files = sys.executable, "{problem} {answer}"
    partition = f"{PROGRAMS / 'partition.py'}"
    if objective == "throughput":
        yield named_program(f"METIS={python} {partition} metis {files} --seed {{seed}}")
        for name, word in (("KaHIP", "kahip"), ("Mt-KaHyPar", "mtkahypar")) if peers else ():
            call = f"{partition} {word} {files} --seed {{seed}}"
            yield named_program(f"{name}=env PYTHONPATH={peers} {python} {call}")
    elif saga:
        for name, word in (("SAGA-HEFT", "Heft"), ("SAGA-CPoP", "Cpop"), ("SAGA-all", "all")):
            yield named_program(f"{name}={saga} {PROGRAMS / 'saga_schedulers.py'} {word} {files}")
    model = f"{PROGRAMS / 'cpsat.py'} {objective} {files} --seconds {{seconds}} --seed {{seed}}"
    yield named_program(f"CP-SAT={python} {model}")


def spread(library: Library, objective: str, count: int) -> list[LibraryEntry]:
    """Entries of an objective, evenly spread, without those that a glance solves."""
    entries = [
        entry
        for entry in library.entries
        if entry.objective == objective
        and entry.proof != "trivial"
        and library.instance(entry.instance).operators >= LEAST_OPERATORS
    ]
    step = max(1.0, len(entries) / count)
    return [entries[int(i * step)] for i in range(min(count, len(entries)))]


def verdicts(library: Library, records: list[LibraryRun]) -> str:
    """Sentence about the best method of every objective, and about the best foreign one."""
    lines = []
    for objective in ("throughput", "makespan"):
        rows = summarise(library, [r for r in records if r.objective == objective])
        ours, foreign = (
            next(row for row in rows if (row.method in PLACERS) == own) for own in (True, False)
        )
        words = [
            f"`{row.method}` reaches the best known value on {row.solved:.0%} of the entries"
            f" (mean gap {100 * row.gap_to_best:.2f} %)"
            for row in (ours, foreign)
        ]
        lines.append(
            f"- **{objective.capitalize()}:** {words[0]}; of the other programs, {words[1]}."
        )
    return "\n".join(lines)


def improvements(records: list[LibraryRun], entries: list[LibraryEntry]) -> str:
    """Sentence about runs that are better than the best known value; empty without any."""
    better = []
    for entry in entries:
        key = entry.instance, entry.objective
        answers = [r for r in records if (r.instance, r.objective) == key and r.value is not None]
        best = max(answers, key=lambda run: entry.sense * (run.value or 0.0))
        assert best.value is not None
        if entry.sense * (best.value - entry.value) > SAME * abs(entry.value):
            better.append(f"{best.value:.6g} by `{best.method}` for {entry.name}")
    if not better:
        return ""
    return (
        "\nThe best known value of an open entry need not be the best possible. These runs found a "
        f"better one, which counts as no gap: {'; '.join(better)}.\n"
    )


def processor() -> str:
    """Name of the processor."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next(line.partition(": ")[2] for line in lines if line.startswith("model name"))


def main() -> None:
    """Run everything, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--placers", default="", help="separated by commas; all by default")
    parser.add_argument("--peers", default="")
    parser.add_argument("--saga", default="")
    parser.add_argument("--entries", type=int, nargs=2, default=(10, 5), help="of each objective")
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--results", type=Path, default=Path("library-results.jsonl"))
    parser.add_argument("-o", type=Path, default=Path("docs/library-results.md"))
    options = parser.parse_args()
    library, records = open_library(), []
    counts = zip(("throughput", "makespan"), options.entries, strict=True)
    chosen = {name: spread(library, name, count) for name, count in counts}
    for objective, entries in chosen.items():
        every = list(methods(objective, options.placers, options.peers, options.saga))
        plan = RunPlan(every, entries, (options.seconds,))
        for record in runs(library, plan, options.results):
            records.append(record)
            print(record.instance, record.method, record.value, flush=True)
    turns = [entry for entries in chosen.values() for entry in entries]
    manifest = hashlib.sha256((library.folder / "manifest.json").read_bytes()).hexdigest()
    text = as_markdown(table_report(library, records), "Results on the library")
    title, _, tables = text.partition("\n")
    introduction = PAGE.format(
        entries=len(turns), throughput=len(chosen["throughput"]), makespan=len(chosen["makespan"]),
        least=LEAST_OPERATORS, closed=sum(entry.closed for entry in turns),
        verdicts=verdicts(library, records), better=improvements(records, turns),
        limit=options.seconds,
        killed=options.seconds + GRACE, processor=processor(),
    )  # fmt: skip
    counts_given = " ".join(map(str, options.entries))
    chosen_placers = f" --placers {options.placers}" if options.placers else ""
    command = (
        f"Made on {datetime.now(UTC).date().isoformat()} by this command, with the library whose "
        f"manifest has the SHA-256 `{manifest[:16]}…`:\n\n```text\npython "
        f"benchmarks/library_results.py --peers PEERS --saga PYTHON --entries {counts_given}"
        f" --seconds {options.seconds:g}{chosen_placers}\n```\n"
    )
    options.o.write_text(f"{title}\n\n{introduction}{tables}\n{command}")


if __name__ == "__main__":
    main()
