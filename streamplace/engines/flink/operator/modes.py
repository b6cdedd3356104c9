"""Flink's balance modes of a FlinkDeployment, tried by patches: the best measured one is kept.

TaskManagers of a deployment are alike, and nothing can be pinned to them. What Flink offers there
is one line of configuration, and each change of it is a new start of the cluster by the operator.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from streamplace.engines.flink.decide.candidates import Candidate, Question, candidates
from streamplace.engines.flink.decide.improving import JobImprover, Proposal, Trial
from streamplace.engines.flink.decide.slot_assignment import (
    MODE_SETTING,
    mode_line,
    present_mode,
)
from streamplace.engines.flink.deployment import SESSION_JOB
from streamplace.engines.flink.operator.api import KubernetesApi
from streamplace.engines.flink.operator.patch_table import PatchStep
from streamplace.engines.flink.operator.patching import (
    JobEnded,
    Patched,
    PatchJournal,
    PatchTransaction,
    claimed,
    claimed_again,
)
from streamplace.engines.flink.operator.resource import (
    FAILED,
    STABLE,
    FlinkResource,
    nested,
    read_specification,
)
from streamplace.engines.flink.rest.client import ENDED, FlinkError
from streamplace.errors import StreamplaceError
from streamplace.io.ledger import NOISE
from streamplace.model.units import digits


@dataclass(frozen=True, slots=True)
class ModeTrials:
    """Tries the modes of a resource."""

    api: KubernetesApi
    resource: FlinkResource
    improver: JobImprover  # which decides by `modes_beside`
    timeout: float  # seconds in which a changed specification must be stable
    resume_by: str  # the command that finishes an interrupted change

    def run(self, proposal: Proposal) -> Proposal:
        """Try modes one after another; the specification ends as that of the best one."""
        for _ in range(self.improver.tries):
            target = proposal.target  # of modes, by all layouts that Flink may choose
            expected = proposal.interruption_to(proposal.where.layout)
            if target is None or not self.improver.agrees(
                f"try {target.name}: {target.predicted}; the operator starts the cluster again, "
                f"which stops the job for about {expected}"
            ):
                break
            proposal, ended = self.tried(proposal, target)
            if ended.step not in (PatchStep.KEPT, PatchStep.RETURNED):
                owner = f"{self.resource.namespace}/{self.resource.name}"
                raise FlinkError(f"{owner}: {ended.step.value}, because {ended.reason}")
        return proposal

    def tried(self, proposal: Proposal, target: Candidate) -> tuple[Proposal, Patched]:
        """Try a mode; return the measurements with it, and how the change ended."""
        least_rate = (1 + NOISE) * proposal.best.rate
        now = read_specification(self.api, self.resource.namespace, self.resource.name)
        patch = nested(now.setting_path(MODE_SETTING), target.mode)
        journal = PatchJournal.of(now, patch, self.resume_by, least_rate)
        after: list[Proposal] = []

        def rate(_: FlinkResource) -> float:
            after.append(measured(self.improver, self.timeout, proposal))
            return after[-1].where.rate

        tell = self.improver.tell
        ended = PatchTransaction(self.api, claimed(journal), rate, tell, self.timeout).run()
        layout = after[-1].where.layout if after else target.layout
        trial = Trial(target.name, layout, line=target.line, predicted=target.predicted)
        if not after:
            trials = (*proposal.trials, replace(trial, failure="it did not become stable"))
            return replace(proposal, trials=trials), ended
        there = after[-1].where
        trial = replace(
            trial, rate=there.rate, is_limited=there.is_limited, interruption=ended.seconds
        )
        tell(f"  {digits(there.rate)} tuples/s were measured there")
        if ended.step is not PatchStep.KEPT:
            return replace(proposal, trials=(*proposal.trials, trial)), ended
        return after[-1].with_where(there, trial), ended


def check_change(api: KubernetesApi, resource: FlinkResource) -> None:
    """Raise FlinkError where a change would lose the state of the job, or is not allowed."""
    if resource.kind == SESSION_JOB:
        raise FlinkError(
            f"pods and balance mode are those of the cluster of {resource.title}, which its "
            "other jobs share; change them in the FlinkDeployment of the cluster"
        )
    if resource.owners:
        raise FlinkError(
            f"{resource.title} is made by {resource.owner}, which would undo a change; put it into "
            "the template there"
        )
    if resource.job.get("upgradeMode", "stateless") == "stateless":
        raise FlinkError(
            f"{resource.title} has upgradeMode stateless, so each change "
            "loses the state of the job; set it to savepoint or last-state"
        )
    if resource.lifecycle != STABLE or not resource.is_reconciled:
        raise FlinkError(
            f"{resource.title} is {resource.lifecycle or 'not taken up'}, not {STABLE}; wait for it"
        )
    api.patch(f"{resource.path}?dryRun=All", {})  # a right that is missing shows now


def finish(
    api: KubernetesApi,
    owner: str,
    improver: Callable[[], JobImprover],
    tell: Callable[[str], None],
    timeout: float,
) -> Patched:
    """Finish a change that was interrupted, in whatever state its resource is.

    ``improver``: is called where the job has to be measured, which then runs.
    """

    def rate(_: FlinkResource) -> float:
        return measured(improver(), timeout).where.rate

    return PatchTransaction(api, claimed_again(owner), rate, tell, timeout).run()


def measured(improver: JobImprover, timeout: float, before: Proposal | None = None) -> Proposal:
    """Measure the only job where it runs now; raise JobEnded if it ends meanwhile."""
    engine = improver.engine
    try:
        job = engine.job()
        engine.rest.wait_running(job, timeout)
        if before is None:
            return improver.propose(job)
        return improver.propose(job, before.measured.observed, before.trials)
    except StreamplaceError as error:
        states = {*engine.rest.jobs().values()}
        if states and states <= ENDED - {FAILED}:
            raise JobEnded(str(error)) from None
        raise


def modes_beside(resource: FlinkResource) -> Callable[[Question], Sequence[Candidate]]:
    """Candidates: Flink's modes but the present one, each by its line of configuration."""
    present = present_mode(resource.configuration, resource.version)

    def modes(question: Question) -> list[Candidate]:
        return [  # none needs pins
            replace(
                c,
                predicted=c.shown,
                can_be_pinned=True,
                line=mode_line(c.mode),
            )
            for c in candidates(question)
            if c.mode not in ("", present)
        ]

    return modes
