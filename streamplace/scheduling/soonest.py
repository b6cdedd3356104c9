"""Scheduling by earliest start: maps the pair of ready task and device that can start first.

A task may have a *favourite* among its successors. The core that ran the task is then reserved for
the favourite until the favourite could start elsewhere as well.
"""

from streamsim import _core

from streamplace.model.arrays import Floats, Ints
from streamplace.scheduling.insertion import ListSchedule
from streamplace.scheduling.tasks import Tasks


def start_soonest(tasks: Tasks, rank: Floats, favourite: Ints) -> ListSchedule:
    """Schedule the tasks by earliest start; ties are broken by the highest rank."""
    return ListSchedule(*_core.start_soonest(tasks.core, rank, favourite))
