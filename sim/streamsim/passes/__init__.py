"""One pass: the time that one set of tuples takes through a placed graph.

`compile_pass` takes an `Instance` and gives a `Pass`: the work of every operator and the bytes of
every stream while the fastest source emits one tuple. Then::

    makespans(one_pass, placements[B, N], rules) -> seconds [B]
    operator_times(one_pass, placements[B, N], rules) -> start, finish, last producer [B, N]
    schedule(one_pass, placement[N], rules)      -> times of all events, and critical chain
    bounds(one_pass, allowed[N, D])              -> lower bounds of the makespan

An operator is ready when all its inputs have arrived. A core is never idle while an operator is
ready on its device, unless the rules hold an order, and an operator occupies one core for w(v, d)
seconds without interruption. `Rules` determine which ready operator is next and which transfers may
be in progress at the same time; `PRESETS` are the rules of published simulators. Noise is modelled
by factors that the caller passes for work and transfers.
"""

from streamsim.pass_rules import DOPPLER, GIPH, PLACETO, PRESETS, Rules
from streamsim.passes.batches import OperatorTimes, makespans, operator_times
from streamsim.passes.bounds import Bounds, bounds
from streamsim.passes.compiled import Pass
from streamsim.passes.compiling import compile_pass, link_records, stream_records, upward_rank
from streamsim.passes.queue import Conflict, conflict, lines, merged_order
from streamsim.passes.schedule import Chain, Part, Schedule, schedule

__all__ = [
    "Bounds",
    "Chain",
    "Conflict",
    "DOPPLER",
    "GIPH",
    "OperatorTimes",
    "PLACETO",
    "PRESETS",
    "Part",
    "Pass",
    "Rules",
    "Schedule",
    "bounds",
    "compile_pass",
    "conflict",
    "link_records",
    "lines",
    "makespans",
    "merged_order",
    "operator_times",
    "schedule",
    "stream_records",
    "upward_rank",
]
