"""Chains: the separate operators of a task in which Flink fused several."""

import html
import re
from collections.abc import Iterable
from typing import NamedTuple

from streamplace.engines.flink.pin.names import FUSED

BESIDE = ", "
"""Separator of the branches of a chain, which are in brackets: ``a -> (b, c -> d)``."""
MOST_OPERATORS = 1000
"""Maximum number of operators of a chain whose tree is parsed."""
_BREAK = "<br/>"
_INDEX = re.compile(r"^\[vertex-\d+\]")
"""Prefix of task names that ``pipeline.vertex-name-include-index-prefix`` adds."""
_NAMESAKE = re.compile(r" \[namesake (\d{1,8})\]$")
"""Suffix that the pinning class adds to the description of an operator that has namesakes."""
_PLANNED = re.compile(r"\[\d{1,8}\]:(.+)", re.DOTALL)
"""Number and description of an operator, as the SQL planner writes them."""
_LINE = re.compile(r"((?::  |   )*)(?::- |\+- )(.*)", re.DOTALL)


class Fused(NamedTuple):
    """An operator of a chain."""

    shown: str  # its name as Flink shows it
    number: int = 0  # number among its namesakes if the plan contains it; else 0
    about: str = ""  # description by the SQL planner; empty for other operators
    text: str = ""  # its text in the plan, if that is not its name


def fused_operators(task: str, description: str, expected: Iterable[str] = ()) -> list[Fused]:
    """Operators of a task, from its name and from its tree in the plan of the job.

    The tree separates names even if they contain arrows and commas. If it shows other texts than
    names, as for SQL, the name of the task is split; then expected names are never split.

    >>> [one.shown for one in fused_operators("a -> (b, x, c)", "a<br/>:- b, x<br/>+- c<br/>")]
    ['a', 'b, x', 'c']
    >>> fused_operators("a -> Map -> Map", "in<br/>+- Map<br/>   +- Map [namesake 2]<br/>")[2]
    Fused(shown='Map', number=2, about='', text='')
    """
    task, tree = _INDEX.sub("", task), description.removesuffix(_BREAK)
    lines = [html.unescape(line) for line in tree.split(_BREAK)]
    nodes = [(0, lines[0])]
    for match in filter(None, map(_LINE.fullmatch, lines[1 : MOST_OPERATORS + 1])):
        nodes.append((len(match[1]) // 3 + 1, match[2]))
    is_tree = tree != description and len(nodes) == len(lines)
    namesakes = [_NAMESAKE.search(text) for _, text in nodes]
    names = [_NAMESAKE.sub("", text) for _, text in nodes]
    depths = [depth for depth, _ in nodes]
    if not is_tree or _as_task(list(zip(depths, names, strict=True))) != task:
        names = unfused(task, expected)
    if not is_tree or len(names) != len(namesakes):
        return [Fused(name) for name in names]
    texts = [_NAMESAKE.sub("", text) for _, text in nodes]
    planned = [_PLANNED.fullmatch(text) for text in texts]
    return [
        Fused(
            name,
            int(number[1]) if number else 0,
            about[1] if about else "",
            text if text != name else "",
        )
        for name, number, about, text in zip(names, namesakes, planned, texts, strict=True)
    ]


def _as_task(nodes: list[tuple[int, str]]) -> str:
    """Name that Flink gives to a task whose operators form this tree (depths and names)."""
    below: dict[int, list[str]] = {}
    for depth, name in reversed(nodes):
        branches = below.pop(depth + 1, [])[::-1]
        rest = BESIDE.join(branches)
        text = name + (FUSED if branches else "") + (f"({rest})" if len(branches) > 1 else rest)
        below.setdefault(depth, []).append(text)
    return below[0][0]


def unfused(task: str, expected: Iterable[str] = ()) -> list[str]:
    """Operators of a task, from its name alone.

    Arrows and commas within brackets belong to names, and so do commas outside of Flink's own
    brackets. Expected names may contain anything.

    >>> unfused("Source: a, b -> Calc(select=[x -> y, z]) -> (c, d -> e)")
    ['Source: a, b', 'Calc(select=[x -> y, z])', 'c', 'd', 'e']
    >>> unfused("a -> b -> c", ["a -> b"])
    ['a -> b', 'c']
    """
    task = _INDEX.sub("", task)
    names, longest = [], sorted(expected, key=len, reverse=True)
    partner, is_list = _brackets(task)
    groups: list[int] = []
    start, at = 0, _after_expected(task, 0, longest)
    while at < len(task):
        inside = bool(groups)
        if inside and at == groups[-1]:
            step = 1
            groups.pop()
        elif task.startswith(FUSED, at):
            step = len(FUSED)
        elif inside and task.startswith(BESIDE, at):
            step = len(BESIDE)
        else:
            at = partner.get(at, at) + 1
            continue
        names.append(task[start:at])
        start = at + step
        if step == len(FUSED) and _is_group(task, start, partner, is_list, groups):
            groups.append(partner[start])
            start += 1
        at = _after_expected(task, start, longest)
    return [name for name in [*names, task[start:]] if name]


def task_name(operators: Iterable[str]) -> str:
    """Name of a task in graphs and placements, in which `operators_in` finds its operators.

    Names that would be split are put in square brackets.

    >>> task_name(["a", "b -> c"])
    'a -> [b -> c]'
    """
    return FUSED.join(f"[{name}]" if _seems_fused(name) else name for name in operators)


def operators_in(task: str) -> list[str]:
    """Operators of a task, from its name in a graph or placement.

    >>> operators_in("a -> [b -> c] -> d[x]")
    ['a', 'b -> c', 'd[x]']
    """
    return [
        name[1:-1] if _is_enclosed(name) and _seems_fused(name[1:-1]) else name
        for name in unfused(task)
    ]


def _seems_fused(name: str) -> bool:
    """Whether a name would not be found again as it is if it were joined with others."""
    if unfused(name) != [name]:
        return True
    inner = name
    while _is_enclosed(inner):
        inner = inner[1:-1]
    return inner not in ("", name) and unfused(inner) != [inner]


def _is_enclosed(name: str) -> bool:
    return len(name) > 1 and name[0] == "[" and name[-1] == "]"


def is_line(task: str, operators: Iterable[str]) -> bool:
    """Whether the operators of a task form a chain without branches.

    >>> is_line("a -> b", ["a", "b"]), is_line("a -> (b, c)", ["a", "b", "c"])
    (True, False)
    """
    return _INDEX.sub("", task) == FUSED.join(operators)


def _is_group(
    task: str, at: int, partner: dict[int, int], is_list: set[int], groups: list[int]
) -> bool:
    """Whether branches of a chain begin here, rather than a name in brackets."""
    if at not in is_list or at not in partner or task[at] != "(":
        return False
    end = partner[at] + 1
    return end == (groups[-1] if groups else len(task)) or (
        bool(groups) and task.startswith(BESIDE, end)
    )


def _brackets(text: str) -> tuple[dict[int, int], set[int]]:
    """Position of each opening bracket → that of its closing one, and the brackets with a list."""
    opened: list[int] = []
    partner: dict[int, int] = {}
    lists = set()
    for i, letter in enumerate(text):
        if letter in "([{":
            opened.append(i)
        elif letter in ")]}" and opened:
            partner[opened.pop()] = i
        elif opened and text.startswith(BESIDE, i):
            lists.add(opened[-1])
    return partner, lists


def _after_expected(text: str, start: int, expected: list[str]) -> int:
    """End of the expected name that begins here; the start if there is none."""
    for prefix in ("Source: ", "Sink: "):
        start += len(prefix) if text.startswith(prefix, start) else 0
    for name in expected:
        end = start + len(name)
        if text.startswith(name, start) and (
            end == len(text) or text.startswith((FUSED, BESIDE, ")", ": Writer"), end)
        ):
            return end
    return start
