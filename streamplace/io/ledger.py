"""The ledger of predicted and measured rates: JSON lines that commands append and learn from.

Every line has the predicted and the measured rate of one run. Lines that are damaged, of another
version, or of something else are skipped and counted; they never end a command. The package has
the runs of this repository's calibration in the same format.
"""

import json
import logging
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import Any, Literal

from streamplace.errors import FormatError, SettingError
from streamplace.io.appending import append_lines, open_to_append, unwritable
from streamplace.io.caches import user_state
from streamplace.io.files import is_file, make_folder, read_lines, spot, wait_for_lock
from streamplace.model.graph import PROFILE_WINDOWS, StreamGraph
from streamplace.model.intervals import (
    USUAL_CONFIDENCE,
    PredictionErrors,
    RateInterval,
    check_confidence,
    count_in_words,
    expected_error,
    least_jobs,
)
from streamplace.model.messages import counted, quoted
from streamplace.model.trust import profile_drift, profile_spread

LOG = logging.getLogger(__name__)

VERSION = 1
"""Version of the lines; a change that older readers would misread needs a new one."""
FILE = "ledger.jsonl"
RECORDED = Path(__file__).with_name("recorded_runs.jsonl")
"""Runs of this repository, written by ``benchmarks/recorded_runs.py``."""
LARGEST_RATE = 1e18
UNNAMED = ("", "Flink Streaming Job")
"""Names of jobs whose program sets none: many jobs may have them."""
NOISE = 0.03
"""Relative difference between runs of one placement (docs/evidence.md)."""
_KEY = "ledger"
_BEGINNING = f'{{"{_KEY}"'.encode()


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """A run with its predicted and its measured rate."""

    job: str  # name of the job, the same in all of its runs
    # Tuples/s of all sources.
    predicted: float
    measured: float
    # Whether back-pressure held the sources back, so that the measured rate is the capacity.
    is_limited: bool = True
    # Ends of the predicted interval; None without one.
    low: float | None = None
    high: float | None = None
    confidence: float | None = None  # confidence of that interval
    by: str = ""  # command that measured it
    when: str = ""  # UTC time in ISO 8601 format; empty if unknown
    drift: float | None = None  # part by which that interval was wider for a job that was not warm
    kept: float | None = None  # tuples/s of sources that the layout does not limit
    spread: float | None = None  # spread of the profile from which it was predicted

    @property
    def score(self) -> float | None:
        """Logarithm of measured / predicted; None if the run does not determine it.

        A run without back-pressure may carry more than it was offered, so it has one only if its
        rate is clearly above the prediction. What was allowed for because the job was not warm is
        no error, as intervals of such jobs are widened by it again. Nor are rates that the layout
        does not limit.
        """
        return self._error if self._is_determined else None

    @property
    def carried(self) -> float | None:
        """Least score that the run may have, where it does not determine it; else None."""
        return None if self._is_determined else self._error

    @property
    def _is_determined(self) -> bool:
        return self.is_limited or self.measured > (1 + NOISE) * self.predicted

    @property
    def _error(self) -> float:
        known = self.kept or 0.0
        if known >= min(self.measured, self.predicted):
            known = 0.0
        error = math.log((self.measured - known) / (self.predicted - known))
        return math.copysign(max(0.0, abs(error) - math.log1p(self.drift or 0.0)), error)

    @property
    def held(self) -> bool | None:
        """Whether the measured rate was in the interval; None if unknown."""
        if self.interval is None:
            return None
        return self.interval.holds(self.measured, is_limited=self.is_limited)

    @property
    def interval(self) -> RateInterval | None:
        """Predicted interval; None without one."""
        if self.low is None or self.high is None:
            return None
        return RateInterval(self.low, self.predicted, self.high)

    def line(self) -> bytes:
        """Encode the entry as a line of a file."""
        row = {_KEY: VERSION} | {k: v for k, v in asdict(self).items() if v not in (None, "")}
        return json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class Ledger:
    """Entries of a ledger file."""

    entries: tuple[LedgerEntry, ...] = ()  # entries in the order of the file
    skipped: str = ""  # description of skipped lines; empty if there are none


def usual_ledger() -> Path:
    """Default file that commands write to; the file and its folder may be missing."""
    return user_state() / FILE


def read_ledger(path: Path) -> Ledger:
    """Read a ledger; it is empty if the file is missing or unreadable."""
    if not is_file(path):
        return Ledger()
    entries: list[LedgerEntry] = []
    others = {"damaged": 0, "of another version": 0, "not of a ledger": 0}
    reason = ""
    try:
        for _, line in read_lines(path):
            entry = _entry_of(line)
            if isinstance(entry, LedgerEntry):
                entries.append(entry)
            else:
                others[entry] += 1
    except FormatError as error:
        reason = f"; {error}"
    number = sum(others.values())
    if not number and not reason:
        return Ledger(tuple(entries))
    parts = ", ".join(f"{count} {kind}" for kind, count in others.items() if count)
    skipped = f"{spot(path)}: {counted(number, 'line')} skipped" + (f" ({parts})" if parts else "")
    return Ledger(tuple(entries), skipped + reason)


def append_entries(entries: Iterable[LedgerEntry]) -> None:
    """Append entries to the user's ledger, with the present time, in one write under a lock.

    An incomplete last line is terminated first, and counts as damaged from then on.
    """
    path, now = usual_ledger(), datetime.now(UTC).isoformat(timespec="seconds")
    lines = b"".join(replace(entry, when=entry.when or now).line() for entry in entries)
    make_folder(path.parent)
    with open_to_append(path) as file:
        wait_for_lock(file)
        try:
            file.seek(0)
            beginning = file.read(len(_BEGINNING))
            is_ended = not beginning or _last_byte(file) == b"\n"
        except OSError as error:
            raise unwritable(path, error) from None
        if not _BEGINNING.startswith(beginning):
            raise FormatError(f"{spot(path)}: is not a ledger; move it away")
        append_lines(file, lines if is_ended else b"\n" + lines, path)


def _last_byte(file: FileIO) -> bytes:
    file.seek(-1, os.SEEK_END)
    return file.read(1)


def known_errors(
    job: str = "",
    own: Sequence[LedgerEntry] = (),
    confidence: float = USUAL_CONFIDENCE,
    recorded: Sequence[LedgerEntry] | None = None,
) -> PredictionErrors:
    """Return the prediction errors that apply to a job.

    The runs of the job itself are used if its program names it and they are enough for the
    confidence, else the user's jobs, else those and the recorded ones. The errors are those for a
    steady job; see `PredictionErrors.for_spread`. Recorded runs of the job itself are ignored, so
    that its errors do not come from the package's records of it, and so are those of the user's
    jobs, which would count twice. ``own`` are the entries of the user's ledger;
    ``recorded`` are by default those of the package.
    """
    check_confidence(confidence)
    needed = least_jobs(confidence)
    mine, carried = _by_job(own, "score"), _by_job(own, "carried")
    runs = mine.get(job, [])
    if len(runs) >= needed and job not in UNNAMED:
        alone = {f"run {i}": [score] for i, score in enumerate(runs)}
        more = {f"bound {i}": [score] for i, score in enumerate(carried.get(job, []))}
        return PredictionErrors.of(alone, confidence, f"{len(runs)} runs of this job", more)
    if len(mine) >= needed:
        return PredictionErrors.of(mine, confidence, count_in_words(len(mine), 0), carried)
    entries = read_ledger(RECORDED).entries if recorded is None else recorded
    known = _by_job(entries, "score").items()
    others = {name: scores for name, scores in known if name != job and name not in mine}
    origin = count_in_words(len(mine), len(others))
    return PredictionErrors.of(others | mine, confidence, origin, carried)


def errors_for(graph: StreamGraph, confidence: float | None = None) -> PredictionErrors | None:
    """Return the prediction errors for a measured graph; None for others, and for confidence 0.

    A confidence that is given for a graph that was not measured is refused.
    """
    if confidence == 0:
        return None
    if PROFILE_WINDOWS not in graph.attributes:
        if confidence is None:
            return None
        raise SettingError(
            f"graph {quoted(graph.name)} was not measured, so nothing is known of the errors of "
            "its predictions; drop the confidence, or measure the graph with "
            "streamplace flink profile"
        )
    own = read_ledger(usual_ledger())
    if own.skipped:
        LOG.warning("%s", own.skipped)
    errors = known_errors(graph.name, own.entries, confidence or USUAL_CONFIDENCE)
    return errors.for_spread(profile_spread(graph)).widened(profile_drift(graph))


def _by_job(
    entries: Iterable[LedgerEntry], of: Literal["score", "carried"]
) -> dict[str, list[float]]:
    """Scores of the runs that have one, or what the others carry at least, by job.

    They are in units of the errors that are expected of their profiles.
    """
    by_job: dict[str, list[float]] = {}
    for entry in entries:
        known: float | None = getattr(entry, of)
        if known is not None:
            unit = expected_error(entry.spread or 0.0)
            by_job.setdefault(entry.job, []).append(known / unit)
    return by_job


def _entry_of(line: bytes) -> LedgerEntry | str:
    """Parse a line to an entry, or return the reason why it is none."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return "damaged"
    if not isinstance(row, dict) or _KEY not in row:
        return "not of a ledger"
    if row.pop(_KEY) != VERSION:
        return "of another version"
    names = {one.name for one in fields(LedgerEntry)}
    values = {name: value for name, value in row.items() if name in names}
    return LedgerEntry(**values) if _is_valid(values) else "damaged"


def _is_valid(row: dict[str, Any]) -> bool:
    """Whether the values of an entry have their types and ranges."""
    texts = [row.get(name, "") for name in ("by", "when")]
    numbers = [row.get(name) for name in ("low", "high", "confidence", "drift", "kept", "spread")]
    return (
        isinstance(row.get("job"), str)
        and all(map(_is_rate, (row.get("predicted"), row.get("measured"))))
        and isinstance(row.get("is_limited", True), bool)
        and all(isinstance(text, str) for text in texts)
        and all(number is None or _is_rate(number) for number in numbers)
    )


def _is_rate(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 < value < LARGEST_RATE  # type: ignore[operator]
