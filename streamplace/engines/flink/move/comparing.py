"""Comparison of what a placement was predicted to carry with what the moved job emits."""

from collections.abc import Callable
from contextlib import suppress
from math import inf

from streamplace.engines.flink.measure.sources import RATE_SECONDS, SourceFlow, source_flow
from streamplace.engines.flink.move.endings import state_clause
from streamplace.engines.flink.rest.client import ENDED, FINISHED, FlinkError, Rest
from streamplace.errors import FormatError
from streamplace.io.ledger import LedgerEntry, append_entries
from streamplace.io.placements import Prediction
from streamplace.model.units import digits

BY = "flink move --placement"


def compare(rest: Rest, job: str, predicted: Prediction, tell: Callable[[str], None]) -> None:
    """Measure a moved job, and report and record its rate with what was predicted.

    A job that is held back below the lower end of the prediction is told to be planned again.
    """
    flow = flow_there(rest, job, tell)
    if flow is None or flow.rate <= 0:
        return
    carries = predicted.carries
    tell(f"there: {digits(flow.rate)} tuples/s (measured); the placement should carry {carries}")
    note(BY, predicted, flow, tell)
    if flow.is_limited and flow.rate + flow.error < carries.low:
        tell(
            "its sources are held back at less than was predicted; 'streamplace flink advise' "
            "measures it there, scales its costs by that, and plans it again"
        )


def flow_there(
    rest: Rest, job: str, tell: Callable[[str], None], seconds: float = RATE_SECONDS
) -> SourceFlow | None:
    """Measure the output of the sources of a moved job; None if that is not possible.

    Raises FlinkError when the job has failed or was cancelled since the move.
    """
    try:
        if (flow := source_flow(rest, job, seconds)) is not None:
            return flow
    except FlinkError as error:
        tell(f"note: the rate of the moved job is not measured: {error}")
    state = None
    with suppress(FlinkError):  # Flink does not answer, or has forgotten the job
        state = rest.state(job)
    if state in ENDED and state != FINISHED:
        raise FlinkError(
            f"job {job} was moved, and is {state} since: {rest.failure(job)}"
            f"{state_clause(rest, job)}"
        )
    return None


def note(by: str, predicted: Prediction, flow: SourceFlow, tell: Callable[[str], None]) -> None:
    """Append to the ledger what a moved job was predicted to carry and what its sources emit."""
    low, value, high = predicted.carries
    if not (0 < flow.rate < inf and 0 < value < inf):
        return
    entry = LedgerEntry(
        predicted.graph,
        value,
        flow.rate,
        flow.is_limited,
        low,
        high,
        predicted.confidence or None,
        by,
        drift=predicted.drift or None,
        kept=predicted.kept or None,
        spread=predicted.spread or None,
    )
    try:
        append_entries([entry])
    except FormatError as error:  # the job runs, and its move does not fail because of its ledger
        tell(f"warning: {error}")
