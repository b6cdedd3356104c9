"""A change of a specification that is tried: kept, or taken back field for field.

A loop observes, decides by the table (`patch_table`), and acts, until an end is decided, as moves
do. A patch carries the version of the resource that was read, so that it changes nothing that
others have changed since. The first Ctrl-C takes the change back; the second one leaves it for
--resume.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic, sleep
from typing import Any

from pydantic import TypeAdapter

from streamplace.engines.flink.operator.api import ApiRefusal, KubernetesApi
from streamplace.engines.flink.operator.patch_table import (
    PATCH_ENDS,
    PATCHES_LEFT,
    PatchObservation,
    PatchOutcome,
    PatchRequest,
    PatchStep,
    Reconciliation,
    SpecificationState,
    Verdict,
    decide_patch,
)
from streamplace.engines.flink.operator.resource import (
    FAILED,
    STABLE,
    FlinkResource,
    read_specification,
)
from streamplace.engines.flink.rest.client import EFFECT_SECONDS, RUNNING, FlinkError, NoAnswer
from streamplace.errors import SettingError, StreamplaceError
from streamplace.io.store import Claim, Claimed, Holder, Store, Table, taken, utc_now
from streamplace.model.message_text import shown

KUBERNETES_POLL_SECONDS = 0.5
"""Pause before Kubernetes is asked again, whether a specification is stable."""
SILENCE_SECONDS = 60.0
"""Longest time without an answer of Kubernetes that is waited for (judgement)."""
CHANGING = (Reconciliation.WAITING, Reconciliation.CHANGING, Reconciliation.ROLLING_BACK)


class JobEnded(FlinkError):
    """A job has ended while it was to be measured."""


class PatchJournal(Claimed):
    """A change of a specification, and how far it is."""

    namespace: str
    name: str
    before: dict[str, Any]  # the specification as it was
    patch: dict[str, Any]  # merge patch of it
    requested: PatchRequest = PatchRequest.NOTHING
    is_patched: bool = False  # whether the last request had its effect
    verdict: Verdict = Verdict.NONE
    least_rate: float = 0.0  # tuples/s that the job has to exceed as changed
    resume_by: str = ""  # the command that finishes it

    @classmethod
    def of(
        cls,
        resource: FlinkResource,
        patch: Mapping[str, Any],
        resume_by: str,
        least_rate: float = 0.0,
    ) -> "PatchJournal":
        """Journal of a patch of a resource that was just read."""
        return cls(
            namespace=resource.namespace,
            name=resource.name,
            before=dict(resource.spec),
            patch=dict(patch),
            least_rate=least_rate,
            resume_by=resume_by,
        )

    @property
    def owner(self) -> str:
        """The resource."""
        return f"{self.namespace}/{self.name}"

    def refuse_held(self) -> None:
        """Raise FlinkError if the command of the change still runs."""
        if self.is_held:
            raise FlinkError(f"{self.owner} is being changed by {self.holder}")

    @property
    def after(self) -> dict[str, Any]:
        """The specification as changed."""
        return merged(self.before, self.patch)


PATCHES = Table("patches", TypeAdapter(PatchJournal))


def claimed(journal: PatchJournal) -> Claim[PatchJournal]:
    """Claim a new change; raise an error if another one of the resource has not ended."""
    own = journal.model_copy(update={"holder": Holder.current()})
    with Store.usual().transaction() as rows:
        for other in rows.all(PATCHES, journal.owner).values():
            other.refuse_held()
            raise FlinkError(
                f"a change of {other.owner} was interrupted; finish it with: {other.resume_by}"
            )
        rows.add(PATCHES, own.owner, own)
    return Claim(PATCHES, own.owner, own)


def claimed_again(owner: str) -> Claim[PatchJournal]:
    """Claim an interrupted change; raise an error if there is none."""
    if (journal := taken(PATCHES, owner, PatchJournal.refuse_held)) is None:
        raise SettingError(f"this machine has no record of an interrupted change of {owner}")
    return Claim(PATCHES, owner, journal)


@dataclass(frozen=True, slots=True)
class Patched:
    """A change that has ended."""

    step: PatchStep
    reason: str
    resource: FlinkResource | None  # as it is now; None if it was deleted
    seconds: float | None  # until the job ran as changed; None if it did not


def merged(document: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Document after a merge patch (RFC 7386).

    >>> merged({"a": 1, "b": {"c": 2}}, {"b": {"c": None, "d": 3}})
    {'a': 1, 'b': {'d': 3}}
    """
    result = dict(document)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping):
            own = result.get(key)
            result[key] = merged(own if isinstance(own, Mapping) else {}, value)
        else:
            result[key] = value
    return result


def inverse(document: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Merge patch that takes a patch of a document back.

    >>> inverse({"a": 1, "b": {"c": 2}}, {"b": {"c": None, "d": 3}})
    {'b': {'c': 2, 'd': None}}
    """
    result: dict[str, Any] = {}
    for key, value in patch.items():
        own = document.get(key)
        if isinstance(value, Mapping) and isinstance(own, Mapping):
            result[key] = inverse(own, value)
        else:
            result[key] = own
    return result


def reconciliation_of(resource: FlinkResource) -> Reconciliation:
    """How far the operator is with a specification."""
    status = resource.status
    if resource.is_suspended:
        return Reconciliation.SUSPENDED
    if not resource.is_reconciled:
        return Reconciliation.WAITING
    found = {state.value: state for state in Reconciliation}.get(resource.lifecycle)
    if found in (Reconciliation.ROLLING_BACK, Reconciliation.ROLLED_BACK):
        return found
    if resource.has_ended:
        return Reconciliation.ENDED
    if resource.lifecycle == STABLE:
        state = (status.get("jobStatus") or {}).get("state", RUNNING)
        return Reconciliation.STABLE if state == RUNNING else Reconciliation.CHANGING
    failed = resource.lifecycle == FAILED or (
        status.get("error") and status.get("jobManagerDeploymentStatus") == "ERROR"
    )
    return Reconciliation.FAILED if failed else Reconciliation.CHANGING


@dataclass(slots=True)
class PatchTransaction:
    """A change that this process has claimed."""

    api: KubernetesApi
    claim: Claim[PatchJournal]  # as `claimed` or `claimed_again` return it
    measure: Callable[[FlinkResource], float]  # tuples/s of the job as it is now
    tell: Callable[[str], None]
    timeout: float  # seconds in which the specification must become stable
    _outcome: PatchOutcome = field(default=PatchOutcome.DONE, init=False)
    _interrupts: int = field(default=0, init=False)
    _resource: FlinkResource | None = field(default=None, init=False)
    _seconds: float | None = field(default=None, init=False)
    _patched_at: str = field(default="", init=False)  # UTC, as events have it

    @property
    def journal(self) -> PatchJournal:
        """Journal of the change."""
        return self.claim.journal

    def run(self) -> Patched:
        """Carry the change out, or finish it; raise KeyboardInterrupt after an interrupt."""
        step, reason = PatchStep.LEFT, ""  # after an interrupt while another one is handled
        try:
            step, reason = self._until_end()
        except KeyboardInterrupt:
            self._interrupts += 1
        finally:
            self.claim.leave() if step in PATCHES_LEFT else self.claim.end()
        if step in PATCHES_LEFT:
            self.tell(f"the change is not finished; finish it with: {self.journal.resume_by}")
        if step is PatchStep.UNDECIDED:
            raise FlinkError(f"{self.journal.owner}: {step.value}, because {reason}")
        if self._interrupts:
            self.tell(f"{self.journal.owner}: {step.value}")
            raise KeyboardInterrupt
        return Patched(step, reason, self._resource, self._seconds)

    def _until_end(self) -> tuple[PatchStep, str]:
        """Observe, decide and act until the end; return it with its reason."""
        acts: dict[PatchStep, Callable[[], None]] = {
            PatchStep.PATCH: self._patch,
            PatchStep.AWAIT: self._await,
            PatchStep.MEASURE: self._measure,
            PatchStep.RETURN: self._return,
            PatchStep.AWAIT_RETURN: self._await,
        }
        while True:
            try:
                step, reason = decide_patch(self._observed())
                if step in PATCH_ENDS:
                    return step, reason
                self._outcome = PatchOutcome.DONE
                acts[step]()
            except KeyboardInterrupt:
                self._interrupts, self._outcome = self._interrupts + 1, PatchOutcome.DONE
            except ApiRefusal as error:
                is_conflict = error.status == 409
                self._outcome = PatchOutcome.UNSURE if is_conflict else PatchOutcome.REFUSED
                if not is_conflict:
                    self.tell(str(error))
            except NoAnswer as error:  # the request may have its effect a little later
                self.tell(str(error))
                sleep(EFFECT_SECONDS)
                self._outcome = PatchOutcome.UNSURE

    def _observed(self) -> PatchObservation:
        """What decides on the next step; Kubernetes is not asked if it does not."""
        journal, specification = self.journal, SpecificationState.OTHER
        if self._interrupts < 2:
            self._resource = self._read()
        resource = self._resource
        if self._outcome is PatchOutcome.SILENT:
            pass
        elif resource is None or resource.document["metadata"].get("deletionTimestamp"):
            specification = SpecificationState.GONE
        elif resource.spec == journal.before:
            specification = SpecificationState.OLD
        elif resource.spec == journal.after:
            specification = SpecificationState.NEW
        return PatchObservation(
            journal.requested,
            journal.is_patched,
            journal.verdict,
            specification,
            Reconciliation.WAITING if resource is None else reconciliation_of(resource),
            self._outcome,
            min(self._interrupts, 2),
        )

    def _read(self) -> FlinkResource | None:
        """Read the resource; None if it was deleted. Silence that is too long is an outcome."""
        deadline = monotonic() + SILENCE_SECONDS
        while True:
            try:
                return read_specification(self.api, self.journal.namespace, self.journal.name)
            except (ApiRefusal, NoAnswer) as error:  # credentials may be replaced, too
                if monotonic() >= deadline:
                    self.tell(str(error))
                    self._outcome = PatchOutcome.SILENT
                    return self._resource
                sleep(KUBERNETES_POLL_SECONDS)
            except FlinkError:
                return None

    # Steps.

    def _patch(self) -> None:
        self.claim.save(requested=PatchRequest.TRY, is_patched=False)
        self._send(self.journal.patch)

    def _return(self) -> None:
        self.claim.save(requested=PatchRequest.RETURN, is_patched=False)
        self.tell(f"patching {self.journal.owner} back to its specification as it was")
        self._send(inverse(self.journal.before, self.journal.patch))

    def _send(self, patch: Mapping[str, Any]) -> None:
        assert self._resource is not None
        version = self._resource.document["metadata"]["resourceVersion"]
        document = {"metadata": {"resourceVersion": version}, "spec": patch}
        self._patched_at = utc_now()
        self.api.patch(self._resource.path, document)
        self.claim.save(is_patched=True)

    def _await(self) -> None:
        """Wait while the operator is at it."""
        begin = monotonic()
        while monotonic() - begin < self.timeout:
            resource = self._read()
            if self._outcome is PatchOutcome.SILENT or resource is None:
                return
            if resource.spec not in (self.journal.before, self.journal.after):
                return
            state, is_try = reconciliation_of(resource), self.journal.requested is PatchRequest.TRY
            if state is Reconciliation.STABLE and is_try:
                self._seconds = monotonic() - begin
            # The operator may start a failed job again; on the way back, there is no other way.
            has_settled = state in (Reconciliation.STABLE, Reconciliation.ENDED)
            if has_settled or (is_try and state not in CHANGING):
                return
            sleep(KUBERNETES_POLL_SECONDS)
        self._outcome = PatchOutcome.LATE
        self.tell(f"{self.journal.owner} is not stable after {self.timeout:g} s{self._why()}")

    def _measure(self) -> None:
        assert self._resource is not None
        try:
            is_better = self.measure(self._resource) > self.journal.least_rate
            verdict = Verdict.KEEP if is_better else Verdict.UNDO
        except JobEnded:
            verdict = Verdict.ENDED
        except StreamplaceError as error:  # also if Flink does not answer there
            self.tell(f"the change cannot be measured: {error}")
            verdict = Verdict.UNDO
        self.claim.save(verdict=verdict)

    def _why(self) -> str:
        """What the operator and Kubernetes say of the last failure."""
        resource = self._resource
        if resource is None:
            return ""
        text = resource.error
        if not text:
            with suppress(FlinkError):
                rows = self.api.get(f"/api/v1/namespaces/{resource.namespace}/events")["items"]
                warnings = [
                    (
                        str(row.get("lastTimestamp") or row.get("eventTime")),
                        str(row.get("message", "")),
                    )
                    for row in rows
                    if row.get("type") == "Warning"
                    and str(row["involvedObject"].get("name", "")).startswith(resource.name)
                ]
                when, text = max(warnings, default=("", ""))
                text = text if when >= self._patched_at else ""  # of this change
        return f": {shown(text, 300)}" if text else ""
