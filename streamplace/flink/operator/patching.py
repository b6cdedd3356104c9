"""A change of a specification: it becomes stable, or its fields are taken back.

As for moves, a loop observes, decides by the table (`patch_table`), and acts until the decision is
an end. A patch contains the version of the resource that was read, so that it does not overwrite
later changes by others. The first Ctrl-C takes the change back; the second one leaves it for
--resume.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from time import monotonic, sleep
from typing import Any

from streamplace.display.report import duration
from streamplace.flink.operator.api import ApiRefusal, KubernetesApi
from streamplace.flink.operator.journal import (
    KUBERNETES_POLL_SECONDS,
    SILENCE_SECONDS,
    JournalMap,
    PatchClaim,
    PatchJournal,
)
from streamplace.flink.operator.merge_patch import changes
from streamplace.flink.operator.patch_table import (
    PATCH_ENDS,
    UNFINISHED_PATCH_ENDS,
    OtherFields,
    PatchedFields,
    PatchObservation,
    PatchOutcome,
    PatchRequest,
    PatchStep,
    Reconciliation,
    decide_patch,
)
from streamplace.flink.operator.resource import (
    FAILED,
    STABLE,
    FlinkResource,
    keeps_state,
    read_deployment,
)
from streamplace.flink.rest.client import EFFECT_SECONDS, RUNNING, FlinkError, NoAnswer
from streamplace.flink.store import StoreError, utc_now
from streamplace.model.message_text import shown

NOTICE_SECONDS = 10.0
"""Time between two messages about a wait."""


def check_change(api: KubernetesApi, resource: FlinkResource) -> None:
    """Raise FlinkError if a change would lose the state of the job, or is not allowed."""
    resource.refuse_shared()
    if resource.owners:
        raise FlinkError(
            f"{resource.title} is made by {resource.owner}, which would undo a change; put it into "
            "the template there"
        )
    if not keeps_state(resource.spec):
        mode = shown(str(resource.job.get("upgradeMode", "stateless")))
        raise FlinkError(
            f"{resource.title} has upgradeMode {mode}, so each change loses the state of the job; "
            "set it to savepoint or last-state"
        )
    JournalMap(api, resource.namespace, resource.name).check(resource)
    if (state := reconciliation_of(resource)) is not Reconciliation.STABLE:
        raise FlinkError(f"{resource.title} is {state.value}, not {STABLE}; wait for it")
    api.patch(f"{resource.path}?dryRun=All", {})  # shows missing rights


@dataclass(frozen=True, slots=True)
class Patched:
    """A change that has ended."""

    step: PatchStep
    reason: str
    # Seconds since the first patch, including the way back; None if another process sent it.
    seconds: float | None


def reconciliation_of(resource: FlinkResource) -> Reconciliation:
    """How far the operator is with a specification."""
    status = resource.status
    if resource.is_suspended:
        return Reconciliation.SUSPENDED
    observed = status.get("observedGeneration")
    if observed is None or observed != resource.document["metadata"].get("generation"):
        return Reconciliation.WAITING
    reported = {state.value: state for state in Reconciliation}.get(resource.lifecycle)
    if reported in (Reconciliation.ROLLING_BACK, Reconciliation.ROLLED_BACK):
        return reported
    if resource.has_ended:
        return Reconciliation.ENDED
    if resource.lifecycle == STABLE:
        state = (status.get("jobStatus") or {}).get("state", RUNNING)
        return Reconciliation.STABLE if state == RUNNING else Reconciliation.CHANGING
    failed = resource.lifecycle == FAILED or (
        status.get("error") and status.get("jobManagerDeploymentStatus") == "ERROR"
    )
    return Reconciliation.FAILED if failed else Reconciliation.CHANGING


_EFFECTS = {PatchRequest.TRY: PatchedFields.NEW, PatchRequest.RETURN: PatchedFields.OLD}


@dataclass(slots=True)
class PatchTransaction:
    """A change that this process has claimed."""

    api: KubernetesApi
    claim: PatchClaim
    tell: Callable[[str], None]
    timeout: float  # timeout in seconds until the specification is stable
    _outcome: PatchOutcome = field(default=PatchOutcome.DONE, init=False)
    _interrupts: int = field(default=0, init=False)
    _resource: FlinkResource | None = field(default=None, init=False)
    _began: float | None = field(default=None, init=False)  # when the first patch was sent
    _waiting_since: float | None = field(default=None, init=False)  # start of the present wait
    _notices: int = field(default=0, init=False)  # messages about the present wait
    _patched_at: str = field(default="", init=False)  # time of the last patch, as in events
    _unsure_since: float | None = field(default=None, init=False)  # first unsure patch

    @property
    def journal(self) -> PatchJournal:
        """Journal of the change."""
        return self.claim.journal

    def run(self) -> Patched:
        """Carry the change out, or finish it; raise KeyboardInterrupt after an interrupt."""
        step, reason = PatchStep.LEFT, ""  # if an interrupt arrives while another one is handled
        failure: StoreError | None = None
        try:
            step, reason = self._until_end()
        except KeyboardInterrupt:
            self._interrupts += 1
        except StoreError as error:  # without a journal, nothing is patched
            failure = error
        finally:
            is_left = step in UNFINISHED_PATCH_ENDS
            try:
                self.claim.leave() if is_left else self.claim.end()
            except StoreError as error:
                is_left = True
                self.tell(str(error))
        owner = self.journal.owner
        resource = None if self._outcome is PatchOutcome.SILENT else self._resource
        if changed := resource and self.journal.changed_by_others(resource.spec):
            self.tell(f"others have changed {changed} of {owner}; these changes stay")
        if step is PatchStep.AT_RISK and self._resource is not None:
            mode = {"upgradeMode": self.journal.before["job"]["upgradeMode"]}
            command = self._resource.patch_command_of({"job": mode})
            self.tell(f"first set upgradeMode back, so that patches keep the state: {command}")
        if is_left:
            self.tell(f"the change is not finished; finish it with: {self.journal.resume_by}")
        if self._interrupts:
            self.tell(f"{owner}: {step.value}")
            raise KeyboardInterrupt
        if failure is not None:
            raise failure
        if step in UNFINISHED_PATCH_ENDS:
            raise FlinkError(f"{owner}: {step.value}, because {reason}")
        seconds = None if self._began is None else monotonic() - self._began
        return Patched(step, reason, seconds)

    def _until_end(self) -> tuple[PatchStep, str]:
        """Observe, decide and act until the end; return it with its reason."""
        while True:
            try:
                step, reason = decide_patch(self._observed())
                if step in PATCH_ENDS:
                    return step, reason
                self._outcome = PatchOutcome.DONE
                if step is PatchStep.PATCH:
                    self._send(PatchRequest.TRY, self.journal.patch)
                elif step is PatchStep.RETURN:
                    changed = changes(self.journal.before, self.journal.after)
                    fields = " and ".join(".".join(path) for path, *_ in changed)
                    self.tell(f"patching {fields} of {self.journal.owner} back: {reason}")
                    self._send(PatchRequest.RETURN, self.journal.back)
                else:
                    self._await()
            except KeyboardInterrupt:
                self._interrupts, self._outcome = self._interrupts + 1, PatchOutcome.DONE
                if (
                    self.journal.requested is not PatchRequest.NOTHING
                    and not self.journal.is_patched
                ):
                    sleep(EFFECT_SECONDS)
            except ApiRefusal as error:
                if error.status == HTTPStatus.CONFLICT:
                    self._wait_for_effect(KUBERNETES_POLL_SECONDS, "")
                else:
                    self._outcome = PatchOutcome.REFUSED
                    self.tell(str(error))
            except NoAnswer as error:
                self._wait_for_effect(EFFECT_SECONDS, str(error))

    def _wait_for_effect(self, pause: float, why: str) -> None:
        """Wait for a late effect of a patch, which counts as refused after SILENCE_SECONDS."""
        if self._unsure_since is None:
            self._unsure_since = monotonic()
            if why:
                self.tell(why)
        sleep(pause)
        is_late = monotonic() - self._unsure_since >= SILENCE_SECONDS
        self._outcome = PatchOutcome.REFUSED if is_late else PatchOutcome.UNSURE

    def _observed(self) -> PatchObservation:
        """Input of the next decision; Kubernetes is asked only if its answers matter."""
        journal = self.journal
        if self._interrupts < 2:
            self._resource = self._read()
        resource = self._resource
        fields, others = PatchedFields.OTHER, OtherFields.SAME
        if resource is None or resource.document["metadata"].get("deletionTimestamp"):
            fields = PatchedFields.GONE
        else:
            fields, others = journal.fields_in(resource.spec), journal.others_in(resource.spec)
        is_patched = journal.is_patched or fields is _EFFECTS.get(journal.requested)
        if is_patched is not journal.is_patched:  # the patch took effect, its answer was lost
            self.claim.save(is_patched=True)
        return PatchObservation(
            journal.requested,
            is_patched,
            fields,
            others,
            Reconciliation.WAITING if resource is None else reconciliation_of(resource),
            self._outcome,
            min(self._interrupts, 2),
        )

    def _read(self) -> FlinkResource | None:
        """Read the resource; None if it was deleted. After SILENCE_SECONDS, set the outcome."""
        deadline = monotonic() + SILENCE_SECONDS
        while True:
            try:
                return read_deployment(self.api, self.journal.namespace, self.journal.name)
            except FlinkError as error:  # also while credentials are replaced
                if monotonic() >= deadline:
                    self.tell(str(error))
                    self._outcome = PatchOutcome.SILENT
                    return self._resource
                sleep(KUBERNETES_POLL_SECONDS)

    # Steps.

    def _send(self, request: PatchRequest, patch: Mapping[str, Any]) -> None:
        self.claim.save(requested=request, is_patched=False)
        assert self._resource is not None
        version = self._resource.document["metadata"]["resourceVersion"]
        document = {"metadata": {"resourceVersion": version}, "spec": patch}
        self._patched_at, self._waiting_since = utc_now(), None
        self._began = self._began or (monotonic() if request is PatchRequest.TRY else None)
        self.api.patch(self._resource.path, document)
        self.claim.save(is_patched=True)

    def _await(self) -> None:
        """Wait for a moment while the operator carries the specification out."""
        assert self._resource is not None
        self._unsure_since = None
        if self._waiting_since is None:
            self._waiting_since, self._notices = monotonic(), 0
        waited = monotonic() - self._waiting_since
        if waited >= self.timeout:
            self._outcome, self._waiting_since = PatchOutcome.LATE, None
            self.tell(f"{self.journal.owner} is not stable after {self.timeout:g} s{self._cause()}")
            return
        if waited >= (self._notices + 1) * NOTICE_SECONDS:
            self._notices += 1
            state = shown(self._resource.lifecycle) or "not taken up"
            self.tell(
                f"{self.journal.owner} is {state}, not {STABLE}; waited for {duration(waited)} "
                "so far"
            )
        sleep(KUBERNETES_POLL_SECONDS)

    def _cause(self) -> str:
        """Messages of the operator and of Kubernetes on the last failure."""
        if (resource := self._resource) is None:
            return ""
        text = resource.error
        if not text:
            with suppress(FlinkError):
                text = (resource.warnings(self.api, self._patched_at) or [""])[-1]
        return f": {shown(text, 300)}" if text else ""
