"""Many inputs on several processes."""

import multiprocessing
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

from fuzz.targets import Target
from fuzz.trial import Finding, confine, tried

CHUNK = 400
"""Inputs of cost 1 that a process is given at once."""
CAMPAIGN: list[tuple[Sequence[Target], int]] = []
"""Targets and seed of the campaign that this process works for."""
Chunk = tuple[int, int, int]
"""Row of a target, and the numbers of its first input and of the one after its last."""


@dataclass(slots=True)
class Tally:
    """What a campaign came to so far."""

    wanted: int
    done: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)


def campaign(targets: Sequence[Target], count: int, seed: int, jobs: int) -> Iterator[Tally]:
    """Try this many inputs, shared out by the targets' costs; yield the tally after every chunk.

    It ends with an error if an input ends the process of its reader.
    """
    for target in targets:
        target.seeds()  # made once, before there are several processes
    chunks = list(_chunks(targets, count))
    tally = Tally(sum(stop - start for _, start, stop in chunks))
    context = multiprocessing.get_context("fork")  # targets cannot be pickled
    with ProcessPoolExecutor(jobs, context, _begin, (targets, seed)) as pool:
        given = {pool.submit(_work, *chunk): chunk for chunk in chunks}
        for future in as_completed(given):
            row, start, stop = given[future]
            tally.findings += future.result()
            tally.done[targets[row].name] += stop - start
            yield tally


def _chunks(targets: Sequence[Target], count: int) -> Iterator[Chunk]:
    """Inputs of all targets in turn, so that a campaign cut short has seen something of each."""
    share = count / sum(1 / target.cost for target in targets)
    wanted = [max(1, round(share / target.cost)) for target in targets]
    rounds = -(-max(wanted) // CHUNK)
    for turn in range(rounds):
        for row, size in enumerate(wanted):
            start, stop = size * turn // rounds, size * (turn + 1) // rounds
            if start < stop:
                yield row, start, stop


def _begin(targets: Sequence[Target], seed: int) -> None:
    CAMPAIGN.append((targets, seed))
    confine()


def _work(row: int, start: int, stop: int) -> list[Finding]:
    ((targets, seed),) = CAMPAIGN
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        found = [tried(targets[row], seed, i, Path(folder)) for i in range(start, stop)]
    return [finding for finding in found if finding]
