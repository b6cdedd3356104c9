"""What plans that a real Flink carried out amount to, from the lines that were measured."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from flink_jobs import UNSEEN
from planned_facts import JobFacts, Row
from planned_runs import CARRIED

Outcomes = Mapping[str, list[float]]


def outcomes(pair: Row, runs: Iterable[Row], facts: JobFacts) -> Outcomes:
    """Received shares of the rate in all runs of a pair, of the plan and of one machine less."""
    shares: dict[str, list[float]] = {"plan": [], "less": []}
    for run in runs:
        is_own = (run["job"], run["level"]) == (pair["job"], pair["level"])
        if is_own and run["which"] in shares:
            shares[run["which"]].append(facts.received(run["rates"], pair["rate"]))
    return shares


def is_carried(shares: Sequence[float]) -> bool:
    """Whether most runs carried the rate.

    >>> is_carried([0.99, 1.0, 0.9]), is_carried([0.99, 0.9])
    (True, False)
    """
    return 2 * sum(share >= CARRIED for share in shares) > len(shares)


def summary(rows: Sequence[Row]) -> str:
    """What the lines amount to, as Markdown."""
    facts = {row["job"]: JobFacts.of(row) for row in rows if row["kind"] == "profile"}
    runs = [row for row in rows if row["kind"] == "run"]
    judged = [
        (row, outcomes(row, runs, facts[row["job"]])) for row in rows if row["kind"] == "pair"
    ]
    judged = [(pair, shares) for pair, shares in judged if all(shares.values())]
    judged.sort(key=lambda one: ([*facts].index(one[0]["job"]), one[0]["level"]))
    eight = [row for row in rows if row["kind"] == "eight"]
    corrections = [row for row in rows if row["kind"] == "correction"]
    parts = (
        counted(judged),
        *holding(judged, runs, corrections, facts),
        *covered(judged, runs, eight, facts),
    )
    return "\n\n".join(parts) + "\n"


def counted(judged: Sequence[tuple[Row, Outcomes]]) -> str:
    """How many pairs, and how many runs, ended as planned."""
    pairs, sentences = len(judged), []
    for which, verb in (("plan", "carries"), ("less", "does not carry")):
        wanted = which == "plan"
        good = sum(is_carried(shares[which]) == wanted for _, shares in judged)
        runs = [share for _, shares in judged for share in shares[which]]
        times = sum((share >= CARRIED) == wanted for share in runs)
        what = "The plan" if wanted else "The plan less its cheapest machine"
        part = f"{good / pairs:.0%}" if pairs else "none"
        sentences.append(
            f"{what} {verb} the rate of {good} of {pairs} pairs ({part}), and in {times} of "
            f"{len(runs)} runs."
        )
    return " ".join(sentences)


def holding(
    judged: Sequence[tuple[Row, Outcomes]],
    runs: Sequence[Row],
    corrections: Sequence[Row],
    facts: Mapping[str, JobFacts],
) -> list[str]:
    """Cost of plans over the cheapest that carried the rate; how many hold after a correction.

    Of a pair, the least that carried it is the cheapest of the plan, the plan less its cheapest
    machine, and the corrected plans; a pair that nothing carried has none. Nothing is said of pairs
    that were planned without a confidence.
    """
    own = [(pair, shares) for pair, shares in judged if "errors" in pair]
    if not own:
        return []
    costs, after = [], []
    for pair, shares in own:
        key = pair["job"], pair["level"]
        mended = {
            run["repeat"]: facts[run["job"]].received(run["rates"], pair["rate"])
            for run in runs
            if run["which"] == "corrected" and (run["job"], run["level"]) == key
        }
        carrying = {
            row["cost"]
            for row in corrections
            if (row["job"], row["level"]) == key and mended.get(row["repeat"], 0) >= CARRIED
        }
        carrying |= {pair["cost"]} if is_carried(shares["plan"]) else set()
        carrying |= {pair["less_cost"]} if is_carried(shares["less"]) else set()
        if carrying:
            costs.append(pair["cost"] / min(carrying))
        whole = [share for share in shares["plan"] if share >= CARRIED]
        missing = len(shares["plan"]) - len(whole) - len(mended)
        after.append(is_carried([*whole, *mended.values(), *[0.0] * missing]))
    ratio = f"{np.median(costs):.2f}" if costs else "unknown"
    return [
        f"Plans cost {ratio} times the least of the tried clusters that carries the rate, in the "
        f"median of {len(costs)} pairs. After one correction, {sum(after)} of {len(own)} pairs "
        f"({sum(after) / len(own):.0%}) are carried."
    ]


def covered(
    judged: Sequence[tuple[Row, Outcomes]],
    runs: Sequence[Row],
    eight: Sequence[Row],
    facts: Mapping[str, JobFacts],
) -> list[str]:
    """How often intervals hold, of all jobs and of those that were never used, and their width.

    Runs count that were offered more than predicted and tell whether the interval holds: one
    machine less that does not carry the rate, or carries more than the upper end, and eight
    TaskManagers.
    """
    pairs = {(pair["job"], pair["level"]): pair for pair, _ in judged if "errors" in pair}
    errors = {job: pair["errors"] for (job, _), pair in pairs.items()}
    ratios: dict[str, list[float]] = defaultdict(list)
    for run in runs:
        pair, own = pairs.get((run["job"], run["level"])), facts[run["job"]]
        if pair is None or run["which"] != "less" or pair["less"]["predicted"] >= pair["rate"]:
            continue
        is_short = own.received(run["rates"], pair["rate"]) < CARRIED
        ratio = own.throughput(run["rates"]) / pair["less"]["predicted"]
        if own.is_steady(run["rates"]) and (is_short or ratio > pair["errors"]["high"]):
            ratios[run["job"]].append(ratio)
    for row in eight:
        if row["job"] in errors and facts[row["job"]].is_steady(row["rates"]):
            measured = facts[row["job"]].throughput(row["rates"])
            ratios[row["job"]].append(measured / row["predicted"])
    sentences = []
    for what, jobs in (
        ("jobs with runs that can tell", [*ratios]),
        ("that were never used to choose anything", [job for job in ratios if job in UNSEEN]),
    ):
        shares = [
            np.mean([errors[job]["low"] <= one <= errors[job]["high"] for one in ratios[job]])
            for job in jobs
        ]
        if shares:
            widths = [(errors[job]["high"] - errors[job]["low"]) / 2 for job in jobs]
            sentences.append(
                f"Of {len(jobs)} {what}, intervals hold {np.mean(shares):.0%} of the runs in the "
                f"mean; their median half-width is {np.median(widths):.0%}."
            )
    return sentences
