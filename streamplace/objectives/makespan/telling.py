"""What a person is told of one pass: devices, the critical chain, the bound, what to move."""

from typing import TYPE_CHECKING

from streamplace.objectives.report import MOST_ROWS, Bar, Report, Sheet, percent, quantity, some

if TYPE_CHECKING:
    from streamplace.objectives.makespan.explain import OnePass


ORDERS = {
    "priority": "Order: of the operators that are ready on a device, the one of the highest "
    "priority runs first",
    "order": "Order: held; a device waits for the next in line even if another operator is ready",
}
"""What the order of a placement means."""


def brief(answer: "OnePass") -> Report:
    """Devices with what they run, in the order in which they run it."""
    by_device: dict[str, list[str]] = {name: [] for name in answer.busy}
    for name, run in sorted(answer.schedule.items(), key=lambda item: item[1].start):
        by_device[run.device].append(name)
    span = max(answer.makespan, 1e-300)
    rows = tuple(
        (device, quantity(busy, "s"), Bar(busy / span), some(by_device[device]) or "—")
        for device, busy in answer.busy.items()
    )
    table = Sheet(("device", "runs", "", "operators, in order"), rows)
    order = (ORDERS[answer.queue],) if answer.queue in ORDERS else ()
    return Report((table, made_of(answer), *order))


def report(answer: "OnePass") -> Report:
    """Devices, the critical chain, the bound, and what to move."""
    devices, parts, *order = brief(answer).parts
    least = (
        f"No placement takes less than {quantity(answer.bound, 's')} (proven); "
        f"schedule length ratio {answer.slr:.3g}"
    )
    if answer.move is None:
        advice = "No move of one operator or two neighbours helps; try: streamplace place"
    else:
        who = " and ".join(answer.move.operators)
        then = quantity(answer.move.makespan, "s")
        advice = f"What to move: {who} to {answer.move.device} would give {then}"
    return Report((devices, _chain(answer), parts, *order, least, advice), answer.words)


def made_of(answer: "OnePass") -> str:
    """Sum of the critical chain."""
    told = ", ".join(
        f"{quantity(t, 's')} {what} ({percent(t / max(answer.makespan, 1e-300))})"
        for what, t in answer.parts.items()
    )
    return f"Critical chain: {quantity(answer.makespan, 's')} = {told or 'nothing'}"


def _chain(answer: "OnePass") -> Sheet:
    """The longest parts of the chain, in order of time."""
    longest = sorted(answer.chain, key=lambda link: -link.seconds)[:MOST_ROWS]
    kept = [link for link in answer.chain if link in longest]
    rows: list[tuple[str | Bar, ...]] = [
        (
            quantity(link.begin, "s"),
            quantity(link.seconds, "s"),
            f"{link.what} {link.who} {link.where}",
        )
        for link in kept
    ]
    if len(answer.chain) > len(kept):
        rows.append(("…", "", f"and {len(answer.chain) - len(kept)} shorter parts"))
    return Sheet(("at", "for", "critical chain"), tuple(rows))
