"""Predictions of Flink's balance modes for a FlinkDeployment, without trials.

TaskManagers of a deployment are equal, and nothing can be pinned to them. A mode is one line of
configuration, and the operator restarts the cluster for each change of it. Layouts differ between
starts, so one start shows little, and no mode is tried (`benchmarks/modes_on_pods.py`).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from streamplace.flink.decide.candidates import Candidate, Question, candidates
from streamplace.flink.decide.improving import Proposal
from streamplace.flink.decide.slot_assignment import (
    MODE_SETTING,
    mode_line,
    present_mode,
)
from streamplace.flink.operator.resource import FlinkResource, nested


def modes_beside(resource: FlinkResource) -> Callable[[Question], Sequence[Candidate]]:
    """Candidates: Flink's modes except the present one, each with its line of configuration."""
    present = present_mode(resource.configuration, resource.version)

    def modes(question: Question) -> list[Candidate]:
        return [  # none needs pins
            replace(c, predicted=c.shown, can_be_pinned=True, line=mode_line(c.mode))
            for c in candidates(question)
            if c.mode not in ("", present)
        ]

    return modes


def mode_advice(resource: FlinkResource, proposal: Proposal) -> Iterator[str]:
    """Sentences: the mode that the user may try, or why there is none."""
    if (target := proposal.target) is None:
        yield proposal.next_step
        return
    stop = proposal.interruption_to(target.layout)
    yield f"worth a try: {target.line}, predicted to carry {target.predicted}"
    yield resource.patch_command_of(nested(resource.setting_path(MODE_SETTING), target.mode))
    yield (
        f"streamplace does not try it: a try stops the job for about {stop}, and again to go back, "
        "and one start in a mode tells less than this prediction"
    )
