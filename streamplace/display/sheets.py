"""Reports and tables of graphs, clusters, placements and problems."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import singledispatch
from itertools import islice
from math import inf

import numpy as np

from streamplace.display.report import MAX_ROWS, Detail, Report, Sheet, duration, some
from streamplace.model.cluster import Cluster
from streamplace.model.constraints import Constraints
from streamplace.model.devices import Devices
from streamplace.model.graph import StreamGraph
from streamplace.model.message_text import counted
from streamplace.model.operators import Operators
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.units import (
    UNLIMITED_BPS,
    digits,
    format_bandwidth,
    format_bytes,
    format_rate,
    format_speed,
)

MAX_TARGETS = 4
MAX_PLACED = 200
"""Operators in a table of details."""


@singledispatch
def report_of(noun: object) -> Report:
    """Report of a graph, a cluster, a placement or a problem."""
    raise NotImplementedError


@report_of.register
def _graph_report(graph: StreamGraph) -> Report:
    """Operators with their rate, CPU, output and targets."""
    about = (Detail(operators_sheet(graph.operators)),) if any(graph.operators.about) else ()
    return Report((_work_sheet(graph), *about), graph.title, graph)


@report_of.register
def _cluster_report(cluster: Cluster) -> Report:
    """Devices, and the links between them."""
    title = f"Cluster of {counted(cluster.n_devices, 'device')}"
    return Report((_device_sheet(cluster.devices), _network_words(cluster)), title)


@report_of.register
def _placement_report(placement: Placement) -> Report:
    """Operators by device."""
    pes = placement.pes().items()
    rows = tuple((device, str(len(names)), some(names)) for device, names in pes)
    return Report((Sheet(("device", "", "operators"), rows),), placement.title)


@report_of.register
def _problem_report(problem: Problem) -> Report:
    """Graph, cluster and constraints."""
    graph, cluster = _graph_report(problem.graph), _cluster_report(problem.cluster)
    rules = _rule_words(problem.constraints)
    parts = (*graph.parts, cluster.title, *cluster.parts, *([rules] if rules else []))
    return Report(parts, graph.title)


def _rule_words(constraints: Constraints) -> str:
    """Number of constraints by kind in one sentence; empty without constraints."""
    kinds = {
        "pinned operators": constraints.pin,
        "groups on one device": constraints.colocate,
        "groups apart": constraints.exlocate,
        "operators on some devices only": constraints.allowed,
    }
    counts = [f"{name} {len(rules)}" for name, rules in kinds.items() if rules]
    return f"Constraints: {', '.join(counts)}" if counts else ""


def _work_sheet(graph: StreamGraph) -> Sheet:
    """Operators with their rate, CPU, output and targets.

    The CPU contains what streams and messages cost.
    """
    operators, streams = graph.operators, graph.streams
    targets: list[list[str]] = [[] for _ in operators.name[:MAX_ROWS]]
    for u, v in zip(streams.source.tolist(), streams.target.tolist(), strict=True):
        if u < len(targets) and operators.name[v] not in targets[u]:
            targets[u].append(operators.name[v])
    rows = [
        (operators.name[v], *_work(graph, v), format_bytes(operators.payload[v]),
         some(feeds, separator=", ", most=MAX_TARGETS) or "—")
        for v, feeds in enumerate(targets)
    ]  # fmt: skip
    tasks = bool(operators.fires_all.all())
    head = ("operator", *(("work",) if tasks else ("takes in", "CPU")), "emits", "feeds")
    if len(operators) > len(rows):
        rows.append((f"and {len(operators) - len(rows)} more", *[""] * (len(head) - 1)))
    return Sheet(head, tuple(rows))


def _work(graph: StreamGraph, v: int) -> tuple[str, ...]:
    """Rate and CPU of an operator, or its instructions if all operators are tasks."""
    operators, ipt = graph.operators, graph.charged_ipt[v]
    if operators.fires_all.all():
        return (f"{digits(ipt / 1e6)} M instructions",)
    rate, constant = float(graph.input_rate[v]), operators.constant[v]
    always = f", {digits(constant)} at any rate" if constant else ""
    max_rate = operators.max_rate[v]
    limit = f", at most {format_rate(max_rate)} a subtask" if max_rate else ""
    mips = rate * ipt / 1e6 + graph.charged_constant[v]
    return f"{format_rate(rate)}{limit}", f"{format_speed(mips)}{always}"


def operators_sheet(operators: Operators, placement: Mapping[str, str] | None = None) -> Sheet:
    """Operators with their devices if they are placed, and with descriptions if any has one."""
    columns: dict[str, Sequence[str]] = {"operator": operators.name}
    if placement is not None:
        columns["device"] = [placement[name] for name in operators.name]
    if any(operators.about):
        columns["what it does"] = operators.about
    rows = list(islice(zip(*columns.values(), strict=True), MAX_PLACED))
    if len(operators) > len(rows):
        rows.append((f"and {len(operators) - len(rows)} more", *[""] * (len(columns) - 1)))
    return Sheet(tuple(columns), tuple(rows))


def with_rest(sheet: Sheet, most: int = MAX_ROWS) -> Sheet:
    """First rows of a table, and the number of the others."""
    rest = len(sheet.rows) - most
    if rest <= 0:
        return sheet
    last = ("…", *[""] * (len(sheet.head) - 2), f"and {rest} more")
    return replace(sheet, rows=(*sheet.rows[:most], last))


def with_counts(names: Iterable[str], operators: Mapping[str, str]) -> list[str]:
    """Operators of subtasks in their order, with the number of subtasks if there are several.

    >>> with_counts(["a", "b#0", "b#1"], {"a": "a", "b#0": "b", "b#1": "b"})
    ['a', 'b × 2']
    """
    counts = Counter(operators[name] for name in names)
    return [f"{name} × {count}" if count > 1 else name for name, count in counts.items()]


def _device_sheet(devices: Devices) -> Sheet:
    """Devices, one row for equal neighbours."""
    facts = [_facts(devices, d) for d in range(len(devices))]
    begins = [d for d in range(len(facts)) if not d or facts[d] != facts[d - 1]]
    rows = [
        (_range(devices.name[begin:end]), *facts[begin])
        for begin, end in zip(begins, [*begins[1:], len(facts)], strict=True)
    ]
    shown = rows[:MAX_ROWS]
    if len(rows) > len(shown):
        rest = len(facts) - begins[MAX_ROWS]
        shown.append((f"and {rest} more", "", "", "", "", ""))
    head = ("device", "cores", "speed of a core", "memory", "network card", "tags")
    return Sheet(head, tuple(shown))


def _network_words(cluster: Cluster) -> str:
    """Bandwidths and latencies of the links in one sentence."""
    bandwidth_bps, latency_s = cluster.bandwidth_bps, cluster.latency_s
    remote = ~np.eye(len(bandwidth_bps), dtype=bool)
    if not remote.any():
        return "Network: none, as there is one device"
    low, high = bandwidth_bps[remote].min(), bandwidth_bps[remote].max()
    near, far = float(latency_s[remote].min()), float(latency_s[remote].max())
    wait = duration(near) + ("" if near == far else f" to {duration(far)}")
    if low >= UNLIMITED_BPS:
        return f"Network: links without a limit, latency {wait}"
    most = "no limit" if high >= UNLIMITED_BPS else format_bandwidth(high)
    speed = format_bandwidth(low) + ("" if low == high else f" to {most}")
    return f"Network: links of {speed}, latency {wait}"


def _facts(devices: Devices, d: int) -> tuple[str, ...]:
    cards = {"out": devices.egress[d], "in": devices.ingress[d]}
    limits = [f"{format_bandwidth(bps)} {way}" for way, bps in cards.items() if bps != inf]
    return (
        str(devices.cores[d]),
        f"{digits(devices.speed[d], 6)} MIPS",
        format_bytes(devices.memory[d]) if devices.memory[d] != inf else "—",
        ", ".join(limits) or "—",
        ", ".join(sorted(devices.tags[d])) or "—",
    )


def _range(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} … {names[-1]} ({len(names)})"
