"""Rates of all operators of a job between the same two moments, so that they can be compared."""

from collections.abc import Mapping
from statistics import mean

from streamplace.engines.flink.measure.sampling import Activity

ALIKE_SECONDS = 0.45
"""Looks at two operators that are less apart are of the same update of Flink's counters."""
READ, WRITTEN = "numRecordsIn", "numRecordsOut"
Rates = dict[str, dict[str, float]]


def rates_of(seen: Mapping[str, Activity]) -> Rates:
    """Tuples/s of every operator, each between its own moments."""
    return {
        name: {"in": round(one.records_in, 1), "out": round(one.records_out, 1)}
        for name, one in seen.items()
    }


def rates_together(seen: Mapping[str, Activity]) -> Rates:
    """Tuples/s of every operator, of all between the same two updates of Flink's counters."""
    looks = {name: one.looks for name, one in seen.items()}
    anchor = next(iter(looks.values()))
    rounds = []
    for moment, _ in anchor:
        near = {
            name: min(own, key=lambda look: abs(look[0] - moment))
            for name, own in looks.items()
            if own
        }
        if len(near) == len(looks) and all(
            abs(look[0] - moment) < ALIKE_SECONDS for look in near.values()
        ):
            rounds.append(near)
    if len(rounds) < 2:
        return rates_of(seen)
    first, last = rounds[0], rounds[-1]
    span = mean(last[name][0] - first[name][0] for name in looks)
    return {
        name: {
            key: round((last[name][1].get(metric, 0) - first[name][1].get(metric, 0)) / span, 1)
            for key, metric in (("in", READ), ("out", WRITTEN))
        }
        for name in looks
    }
