"""Batch scheduling: maps all ready tasks as a batch, then the tasks that became ready.

The tasks of a batch are mapped one at a time, each to the core where it finishes earliest; rules
differ in which task comes next.
"""

from typing import Final

from streamsim import _core

from streamplace.model.arrays import Floats
from streamplace.scheduling.insertion import ListSchedule
from streamplace.scheduling.tasks import Tasks

RULES: Final = {"min-min": 0, "max-min": 1, "sufferage": 2}
"""Numbers of the rules in the core: next comes the task with the earliest or the latest of the
earliest finishes, or with the largest loss on its second-best device."""


def by_batches(tasks: Tasks, rule: int, rank: Floats) -> ListSchedule:
    """Schedule batch after batch; ties within the rule are broken by the highest rank."""
    return ListSchedule(*_core.by_batches(tasks.core, rule, rank))
