"""METIS: balanced CPU load, few bytes between the parts (Karypis and Kumar 1998).

The weight of a vertex is the CPU load of its operators, the weight of an edge the bytes per second
between two operators. METIS does not know throughput: it uses exactly k parts, however light the
graph. It does not know the network either: if links differ, parts exchange devices of equal power,
and if devices are unlike, the assignment of parts to devices is the best by the objective.
"""

import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Literal

import numpy as np

from streamplace.errors import OptionError
from streamplace.model.arrays import Floats, Ints
from streamplace.model.message_text import quoted
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers import partition_graph
from streamplace.placers.oracle import with_best_k
from streamplace.placers.registry import PLACERS, Budget, Found, placer

METHODS = ("auto", "recursive", "kway")
RECURSIVE_UP_TO = 8
_PRINTING = threading.Lock()


@placer("metis")
def metis(
    problem: Problem,
    objective: Objective,
    *,
    seed: int,
    budget: Budget,
    k: int | None = None,
    ufactor: int | None = None,
    method: Literal["auto", "recursive", "kway"] = "auto",
) -> Placement:
    """Cut the graph into k parts of equal CPU load with few bytes between them.

    If devices are unlike, each part runs on the device where the objective is best, as far as few
    assignments of parts to devices, or exchanges of two, show.

    Parameters
    ----------
    k
        Number of parts; as many as devices by default. The k most powerful devices are used, each
        with a share of the load in proportion to its power.
    ufactor
        Imbalance that METIS may leave, in thousandths; METIS decides by default (1 for recursive
        bisection, 30 for k-way).
    method
        Recursive bisection or direct k-way cuts; "auto" bisects up to 8 parts.
    """
    if ufactor is not None and not 1 <= ufactor <= 10**6:
        raise OptionError(f"ufactor is {ufactor}; it must be between 1 and 1000000")
    if method not in METHODS:
        raise OptionError(f"method is {quoted(method)}; it must be one of {', '.join(METHODS)}")
    parts = partition_graph.checked_parts(problem, k)
    power = partition_graph.power(problem)
    devices = partition_graph.strongest(power, parts)
    recursive = parts <= RECURSIVE_UP_TO if method == "auto" else method == "recursive"
    part = _parts(problem, power[devices], seed % 2**31, ufactor, recursive)
    devices = partition_graph.exchanged(problem, part, devices)
    return partition_graph.best_mapping(problem, objective, part, devices, budget)


@placer("metis-oracle")
def metis_oracle(
    problem: Problem,
    objective: Objective,
    *,
    seed: int,
    budget: Budget,
    ufactor: int | None = None,
    method: Literal["auto", "recursive", "kway"] = "auto",
) -> Found:
    """METIS with the best number of parts.

    Parameters
    ----------
    ufactor, method
        As for ``metis``.
    """
    base = PLACERS["metis"].with_options(ufactor=ufactor, method=method)
    return with_best_k(base, problem, objective, seed, budget)


def _parts(
    problem: Problem, power: Floats, seed: int, ufactor: int | None, recursive: bool
) -> Ints:
    unit = problem.unit
    load = _loads(problem, unit)
    if len(power) == 1:
        return np.zeros(problem.n_operators, np.int32)
    if len(load) <= len(power):  # each has its own, the heaviest the fastest
        part = np.empty(len(load), np.int32)
        part[np.argsort(-load, kind="stable")] = np.argsort(-power, kind="stable")[: len(load)]
        return part[unit]
    import pymetis

    instance = problem.instance
    traffic = np.maximum(partition_graph.whole(instance.traffic), 1)
    graph = partition_graph.neighbours(problem, unit, len(load), traffic)
    options = pymetis.Options(seed=seed)
    if ufactor is not None:
        options.ufactor = ufactor
    with _silent():
        cut = pymetis.part_graph(
            len(power),
            pymetis.CSRAdjacency(graph.start, graph.neighbour),
            vweights=partition_graph.whole(load),
            eweights=graph.weight,
            tpwgts=None if len(set(power.tolist())) == 1 else (power / power.sum()).tolist(),
            recursive=recursive,
            options=options,
        )
    return np.array(cut.vertex_part, np.int32)[unit]


@contextmanager
def _silent() -> Iterator[None]:
    """Suppress METIS's complaints about bisections with an empty side; its parts are legal.

    It prints to C's stream ``stdout``, which Python does not use, so only that stream is replaced.
    """
    with _PRINTING:
        stream, sink = _c_streams()
        usual = stream.value
        stream.value = sink
        try:
            yield
        finally:
            stream.value = usual


@lru_cache
def _c_streams() -> tuple[ctypes.c_void_p, int | None]:
    """C's variable ``stdout``, and an open stream that discards what is printed to it."""
    libc = ctypes.CDLL(None)
    libc.fopen.restype, libc.fopen.argtypes = ctypes.c_void_p, (ctypes.c_char_p, ctypes.c_char_p)
    name = "__stdoutp" if sys.platform == "darwin" else "stdout"
    return ctypes.c_void_p.in_dll(libc, name), libc.fopen(os.devnull.encode(), b"w")


def _loads(problem: Problem, unit: Ints) -> Floats:
    """CPU load of every unit, averaged over the devices; shape [U]."""
    instance = problem.instance
    if problem.rules is None and instance.full_load.shape[1] == 1:
        return instance.full_load[:, 0]
    of_type = np.bincount(instance.device_type, minlength=instance.full_load.shape[1])
    mean: Floats = instance.full_load @ (of_type / instance.n_devices)
    return np.bincount(unit, mean).astype(np.float64)
