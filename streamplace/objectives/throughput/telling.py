"""What a person is told of a throughput: devices, links, the bottleneck, what to move."""

from typing import TYPE_CHECKING

from streamplace.model.units import format_bandwidth
from streamplace.objectives.report import MOST_ROWS, Bar, Report, Sheet, percent, some

if TYPE_CHECKING:
    from streamplace.objectives.throughput.explain import Carried, LinkLoad, Sustained

MOST_CARRIED, MOST_SHARES = 4, 6


def brief(answer: "Sustained") -> Report:
    """Devices with their load and operators, and the bottleneck."""
    rows = tuple(
        (
            device.name,
            percent(device.load),
            Bar(device.load),
            some(device.operators.rows, device.operators.label) or "—",
        )
        for device in answer.devices
    )
    limit = answer.bottleneck
    devices = Sheet(("device", "CPU", "", "operators"), rows)
    return Report((devices, f"Bottleneck: {limit.label} at {percent(limit.load)}"))


def report(answer: "Sustained") -> Report:
    """Everything: sources, devices, links, the bottleneck with what it carries, what to move."""
    parts: list[str | Sheet] = []
    if len(answer.sources) > 1:
        shares = ", ".join(f"{name} {percent(x)}" for name, x in answer.sources.items())
        parts.append(f"sources: {shares}")
    parts.append(_devices(answer))
    if answer.links:
        parts.append(_links(answer.links))
    limit = answer.bottleneck
    carried = ", ".join(f"{c.name} ({percent(c.load)})" for c in limit.carries[:MOST_CARRIED])
    parts.append(f"Bottleneck: {limit.label} at {percent(limit.load)}, carrying {carried}")
    if answer.move is not None:
        who = " and ".join(answer.move.operators)
        then = percent(answer.move.relative_throughput)
        parts.append(f"What to move: {who} to {answer.move.device} would give {then}")
    elif answer.value < 1:
        parts.append("No move of one operator or two neighbours helps; try: streamplace place")
    title = f"{percent(answer.value)} of {answer.offered:g} tuples/s, that is "
    return Report(tuple(parts), f"{title}{answer.throughput:g} tuples/s")


def _name(carried: "Carried") -> str:
    return carried.name


def _share(carried: "Carried") -> str:
    return f"{carried.name} {percent(carried.load)}"


def _devices(answer: "Sustained") -> Sheet:
    busy = sorted((d for d in answer.devices if d.operators), key=lambda d: -d.load)
    rows: list[tuple[str | Bar, ...]] = [
        (
            device.name,
            percent(device.load),
            Bar(device.load),
            some(device.operators, _share, ", ", MOST_SHARES),
        )
        for device in busy[:MOST_ROWS]
    ]
    idle = [device.name for device in answer.devices if not device.operators]
    if idle:
        rows.append(("", "", "", f"idle: {', '.join(idle[:MOST_ROWS])}"))
    return Sheet(("device", "CPU", "", "operators (share of the device)"), tuple(rows))


def _links(links: "tuple[LinkLoad, ...]") -> Sheet:
    rows: list[tuple[str | Bar, ...]] = [
        (
            f"{link.source}→{link.target}",
            percent(link.load),
            Bar(link.load),
            f"{format_bandwidth(8 * link.bytes_per_s)} of {format_bandwidth(link.bandwidth_bps)}: "
            + some(link.streams, _name, ", ", MOST_CARRIED),
        )
        for link in links[:MOST_ROWS]
    ]
    if len(links) > MOST_ROWS:
        rows.append(("…", "", "", f"and {len(links) - MOST_ROWS} more links"))
    return Sheet(("link", "load", "", "carrying"), tuple(rows))
