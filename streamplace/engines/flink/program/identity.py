"""Names of operators that do not depend on how a job is submitted, chained and placed.

The pinning class (``java/PlacedIds.java``) names operators in the same way. The number that the SQL
planner gives to an operator is removed, because it changes with every submission. Operators that
then share a name are numbered in the order of the planner, else of the job's stream graph: ``Map``,
``Map (2)``. The plan of a pinned job contains the numbers. For any other job, positions in the
stream graph follow from Flink's ids, because an operator's id is a hash of its position, which
Flink computes by Murmur3.
"""

import html
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import permutations, product
from typing import NamedTuple

from streamplace.engines.flink.pin.hook import stem_of
from streamplace.engines.flink.program.chains import Fused, fused_operators
from streamplace.engines.flink.rest.answers import JobVertex, PlanNode

MOST_OUTPUTS, MOST_INPUTS = 8, 4
"""Limits of the search for the position of an operator."""
_ID = re.compile(r"[0-9a-f]{32}")
_UNDO_37 = pow(37, -1, 256)
_MASK = 2**64 - 1
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F


class TaskOperators(NamedTuple):
    """Operators of a task."""

    shown: tuple[str, ...]  # their names as Flink shows them, such as ``Source: bids[1]``, in order
    names: tuple[str, ...]  # their names in placements, such as ``bids``
    unsure: tuple[str, ...] = ()  # names with a number that may belong to another operator
    about: tuple[str, ...] = ()  # description of each by the SQL planner, or an empty text
    texts: tuple[str, ...] = ()  # texts of operators in the plan that are not their names


class _Bearer(NamedTuple):
    """An operator with a certain name: its task, its position there, and its numbers."""

    task: int
    place: int
    planned: int
    numbered: int


def operators_of(
    vertices: Sequence[JobVertex], nodes: Sequence[PlanNode], expected: Iterable[str] = ()
) -> list[TaskOperators]:
    """Operators of each task of a job.

    ``nodes`` are those of the plan of the job. Names in ``expected`` may contain any characters.
    """
    plan = {node["id"]: node for node in nodes}
    texts = [plan[v["id"]].get("description", "") if v["id"] in plan else "" for v in vertices]
    fused = [
        fused_operators(vertex["name"], text, expected)
        for vertex, text in zip(vertices, texts, strict=True)
    ]
    bearers: dict[str, list[_Bearer]] = {}
    for i, operators in enumerate(fused):
        text = html.unescape(texts[i])
        for k, (shown, numbered, *_) in enumerate(operators):
            stem, planned = stem_of(shown, text)
            bearers.setdefault(stem, []).append(_Bearer(i, k, planned, numbered))
    has_namesakes = any(len(group) > 1 for group in bearers.values())
    return _named(bearers, fused, _places(vertices, plan, fused) if has_namesakes else {})


def _named(
    bearers: Mapping[str, list[_Bearer]],
    fused: Sequence[Sequence[Fused]],
    places: Mapping[int, int],
) -> list[TaskOperators]:
    names = [[""] * len(operators) for operators in fused]
    unsure: list[list[str]] = [[] for _ in fused]
    for stem, group in bearers.items():
        is_sure = _number(group, places)
        for n, bearer in enumerate(group, 1):
            number = bearer.numbered or n
            name = f"{stem} ({number})" if number > 1 else stem
            names[bearer.task][bearer.place] = name
            if not is_sure:
                unsure[bearer.task].append(name)
    return [
        TaskOperators(
            tuple(one.shown for one in operators),
            tuple(own),
            tuple(doubtful),
            tuple(one.about for one in operators),
            tuple(one.text for one in operators if one.text),
        )
        for operators, own, doubtful in zip(fused, names, unsure, strict=True)
    ]


def _number(group: list[_Bearer], places: Mapping[int, int]) -> bool:
    """Sort the operators that share a name; return whether their order is certain."""
    tasks = {bearer.task for bearer in group}
    if len(tasks) == 1 or any(bearer.numbered > 1 for bearer in group):
        group.sort(key=lambda bearer: bearer.numbered or 1)
    elif all(bearer.planned for bearer in group):
        group.sort(key=lambda bearer: bearer.planned)
    elif all(bearer.place == 0 and bearer.task in places for bearer in group):
        group.sort(key=lambda bearer: places[bearer.task])
    else:
        return False
    return True


def _places(
    vertices: Sequence[JobVertex],
    plan: Mapping[str, PlanNode],
    fused: Sequence[Sequence[Fused]],
) -> dict[int, int]:
    """Task → position of its first operator in the stream graph, as far as it follows from ids.

    The id of a chain is that of its first operator; positions after longer chains are unknown.
    """
    most = sum(map(len, fused))
    place_of = {
        place_hash(place, chained): place
        for place, chained in product(range(most), range(MOST_OUTPUTS + 1))
    }
    single = {v["id"] for v, operators in zip(vertices, fused, strict=True) if len(operators) == 1}
    places = {}
    for i, vertex in enumerate(vertices):
        inputs = [row["id"] for row in plan.get(vertex["id"], {"id": ""}).get("inputs", ())]
        if len(inputs) > MOST_INPUTS or not single.issuperset(inputs):
            continue
        for order in permutations(map(id_bytes, inputs)):
            own = unmixed(id_bytes(vertex["id"]), order)
            if own in place_of:
                places[i] = place_of[own]
    return places


@cache
def place_hash(place: int, chained: int) -> bytes:
    """Hash of an operator's position and the number of its chained outputs.

    >>> place_hash(0, 1).hex()
    'cbc357ccb763df2852fee8c4fc7d55f2'
    """
    return murmur3(struct.pack("<i", place) * (chained + 1))


def id_bytes(text: str) -> bytes:
    """Bytes of an id; empty if the text is not an id.

    >>> len(id_bytes("cbc357ccb763df2852fee8c4fc7d55f2")), id_bytes("v0")
    (16, b'')
    """
    return bytes.fromhex(text) if _ID.fullmatch(text) else b""


def unmixed(mixed: bytes, inputs: Sequence[bytes]) -> bytes:
    """Hash of an operator's position, from its id and those of its inputs, in order.

    It inverts Flink's mixing of each byte: ``own = own * 37 ^ input``.

    >>> own, one, other = 5, 7, 9
    >>> mixed = (own * 37 ^ one) * 37 & 255 ^ other
    >>> unmixed(bytes([mixed]), [bytes([one]), bytes([other])])[0]
    5
    """
    for other in reversed(inputs):
        mixed = bytes((a ^ b) * _UNDO_37 & 255 for a, b in zip(mixed, other, strict=False))
    return mixed


def murmur3(text: bytes) -> bytes:
    """128-bit Murmur3 with seed 0."""
    h1 = h2 = 0
    whole = len(text) // 16 * 16
    for k1, k2 in struct.iter_unpack("<QQ", text[:whole]):
        h1 ^= _spread(k1, _C1, 31, _C2)
        h1 = ((_turned(h1, 27) + h2) * 5 + 0x52DCE729) & _MASK
        h2 ^= _spread(k2, _C2, 33, _C1)
        h2 = ((_turned(h2, 31) + h1) * 5 + 0x38495AB5) & _MASK
    k1, k2 = struct.unpack("<QQ", text[whole:].ljust(16, b"\0"))
    h1 ^= _spread(k1, _C1, 31, _C2) ^ len(text)
    h2 ^= _spread(k2, _C2, 33, _C1) ^ len(text)
    h1 = (h1 + h2) & _MASK
    h2 = (h2 + h1) & _MASK
    h1, h2 = _scrambled(h1), _scrambled(h2)
    h1 = (h1 + h2) & _MASK
    return struct.pack("<QQ", h1, (h2 + h1) & _MASK)


def _spread(k: int, first: int, bits: int, second: int) -> int:
    return _turned(k * first & _MASK, bits) * second & _MASK


def _turned(h: int, bits: int) -> int:
    return (h << bits | h >> 64 - bits) & _MASK


def _scrambled(h: int) -> int:
    h = (h ^ h >> 33) * 0xFF51AFD7ED558CCD & _MASK
    h = (h ^ h >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return h ^ h >> 33
