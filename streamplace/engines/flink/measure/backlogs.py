"""Detection of sources that fall behind without back-pressure."""

import math

from streamplace.engines.flink.cpu.limits import FULL
from streamplace.engines.flink.measure.consistency import Present
from streamplace.engines.flink.measure.sampling import Activity, pending_of
from streamplace.engines.flink.rest.plan import FlinkTask
from streamplace.model.messages import listed

BLOCKED = 0.02
"""Maximum share of time that a source may be back-pressured if its rate is the offered one."""
SUBTASK_BLOCKED = 0.1
"""Largest share of time that a subtask may be back-pressured; also Flink's own threshold."""
NOISE = 3.0
"""Backlogs that grow by less than this multiple of the root of arrived tuples may be steady."""
POLLED_RATE = 1000.0
"""Minimum tuples/s of a busy subtask of a source that is at its limit.

One that polls for input all the time is as busy if little arrives.
"""
BACKLOG_SECONDS = 60.0
"""A backlog is large if a source needs longer for it at its present rate.

What waits for less is no reason to move a job: batches, late counts, and the outage of a restart or
a move, which took up to 46 s, leave as much.
"""


def why_behind(
    source: FlinkTask, seen: Activity, rate: float, present: Present | None
) -> str | None:
    """Return why a source without back-pressure emits too little; None if it does not.

    One of its subtasks is back-pressured, its backlog grows, or one of its TaskManagers has no CPU
    left while its backlog is large or not reported, because it may have more to emit then. On
    other machines, its threads are busy all the time instead: if one of them does all the work of a
    job, nothing else shows that it is at its limit.

    ``rate``: tuples/s that it emits.
    """
    if source.has_ended:
        return None
    if (blocked := seen.most_back_pressured) > SUBTASK_BLOCKED:
        return f"one of its subtasks is back-pressured {100 * blocked:.0f} % of the time"
    pending = pending_of(source.operators[0])
    grows = backlog_grows(seen, pending, rate)
    if grows:
        return "its backlog grows"
    if grows is not None and seen.totals.get(pending, 0.0) <= BACKLOG_SECONDS * rate:
        return None
    if present is None:
        return None
    usage = present.usage
    devices = {*present.devices.get(source.name, ())}
    full = [device for device in sorted(devices & usage.keys()) if usage[device].is_full]
    if full:
        return f"{listed(full)} has no CPU left for it"
    is_polling = grows is None and rate < POLLED_RATE * source.parallelism
    if devices <= usage.keys() or seen.busy is None or is_polling:
        return None
    busy = seen.busy / source.parallelism
    return f"it is busy {100 * busy:.0f} % of the time" if busy >= FULL else None


def is_blocked(share: float, most: float) -> bool:
    """Return whether back-pressure reduces the output of a source, or of one of its subtasks.

    ``share``: share of the time for which it is back-pressured, in the mean of its subtasks.
    ``most``: the same of its most back-pressured subtask.
    """
    return share > BLOCKED or most > SUBTASK_BLOCKED


def backlog_grows(seen: Activity, pending: str, rate: float) -> bool | None:
    """Return whether the backlog of a source grows; None if it reports none.

    Records of transactions arrive together, so a backlog that grows does so in both halves of the
    time, and is never as small in the second half as in the first.

    ``pending``: metric of its unread records.
    """
    growth = seen.growth(pending)
    if growth is None:
        return None
    halves, lows = seen.halves(pending), seen.lows(pending)
    is_steady = halves is None or lows is None or (min(halves) > 0 and lows[1] > lows[0])
    return is_steady and growth > BLOCKED * rate + NOISE * counting_error(seen, rate)


def counting_error(seen: Activity, rate: float) -> float:
    """Standard error of a rate that was counted, if tuples come at random."""
    return math.sqrt(rate / max(seen.seconds, 1.0))
