"""The journal of a change, in a ConfigMap beside its resource: any machine can finish the change.

The ConfigMap belongs to the resource, and is deleted with it. Each write contains the version that
was read, so that two commands cannot hold a change at once. After a change, it is empty.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from time import monotonic, sleep
from typing import Any, Required, TypeVar

from pydantic import TypeAdapter, ValidationError

from streamplace.display.report import duration
from streamplace.errors import SettingError, StreamplaceError
from streamplace.flink.deployment import DEPLOYMENT
from streamplace.flink.operator.api import ApiRefusal, KubernetesApi
from streamplace.flink.operator.merge_patch import changes, inverse, merged
from streamplace.flink.operator.patch_table import OtherFields, PatchedFields, PatchRequest
from streamplace.flink.operator.resource import (
    API_VERSION,
    FlinkResource,
    checked,
    keeps_state,
    optional_fields,
)
from streamplace.flink.rest.client import EFFECT_SECONDS, FlinkError, NoAnswer
from streamplace.flink.store import (
    LEASE_SECONDS,
    Claimed,
    Holder,
    StoreError,
    TakenOver,
    keep_renewed,
    utc_now,
    with_holder,
)
from streamplace.model.message_text import shown

SILENCE_SECONDS = 60.0
"""Maximum time to wait for an answer of Kubernetes (judgement)."""
KUBERNETES_POLL_SECONDS = 0.5
"""Pause before Kubernetes is asked again."""
KEY = "journal"
_MAP = TypeAdapter(
    optional_fields(
        metadata=Required[optional_fields(resourceVersion=Required[str])], data=dict[str, str]
    )
)


class PatchJournal(Claimed):
    """A change of a specification, and its progress."""

    namespace: str
    name: str
    uid: str  # of the resource; if it is deleted and created again, it has another one
    before: dict[str, Any]  # the specification for which the change was decided
    patch: dict[str, Any]  # merge patch of that specification
    requested: PatchRequest = PatchRequest.NOTHING
    is_patched: bool = False  # whether the last request took effect
    resume_by: str = ""  # the command that finishes it

    @classmethod
    def of(
        cls, resource: FlinkResource, patch: Mapping[str, Any], resume_by: str
    ) -> "PatchJournal":
        """Journal of a patch that was decided for this version of a resource."""
        return cls(
            namespace=resource.namespace,
            name=resource.name,
            uid=resource.document["metadata"]["uid"],
            before=dict(resource.spec),
            patch=dict(patch),
            resume_by=resume_by,
        )

    @property
    def owner(self) -> str:
        """Namespace and name of the resource."""
        return f"{self.namespace}/{self.name}"

    def refuse_held(self) -> None:
        """Raise FlinkError if another command holds the change."""
        if self.is_held and self.holder != Holder.current():
            raise FlinkError(
                f"{self.owner} is being changed by {self.holder}; wait until that has ended, or "
                f"for {duration(LEASE_SECONDS)} if its machine is lost"
            )

    def unfinished(self) -> FlinkError:
        """Error: this change has to be finished first. Raise another one if its command runs."""
        self.refuse_held()
        return FlinkError(
            f"a change of {self.owner} was interrupted; finish it with: {self.resume_by}"
        )

    @property
    def after(self) -> dict[str, Any]:
        """The specification as changed."""
        return merged(self.before, self.patch)

    @property
    def back(self) -> dict[str, Any]:
        """Merge patch that takes the change back."""
        return inverse(self.before, self.patch)

    def fields_in(self, spec: Mapping[str, Any]) -> PatchedFields:
        """The fields of the patch in a specification."""
        if merged(spec, self.back) == spec:
            return PatchedFields.OLD
        return PatchedFields.NEW if merged(spec, self.patch) == spec else PatchedFields.OTHER

    def others_in(self, spec: Mapping[str, Any]) -> OtherFields:
        """The other fields of a specification."""
        if not keeps_state(spec):
            return OtherFields.RISKY
        is_same = merged(spec, self.back) == self.before
        return OtherFields.SAME if is_same else OtherFields.CHANGED

    def changed_by_others(self, spec: Mapping[str, Any]) -> str:
        """Fields of a specification that others have changed, with both values; empty if none."""
        unpatched = merged(spec, self.back)
        fields = [*changes(self.before, unpatched)]
        if self.fields_in(spec) is PatchedFields.OTHER:
            fields += changes(unpatched, spec)
        return ", ".join(
            f"{'.'.join(path)} ({_shown(old)} → {_shown(new)})" for path, old, new in fields
        )


J = TypeVar("J", bound=PatchJournal | None)


def _shown(value: object) -> str:
    if value is None:
        return "nothing"
    return shown(value if isinstance(value, str) else json.dumps(value), 40)


@dataclass(frozen=True, slots=True)
class JournalMap:
    """The ConfigMap for the journal of a FlinkDeployment."""

    api: KubernetesApi
    namespace: str
    name: str  # of the FlinkDeployment

    @property
    def title(self) -> str:
        """Name of the ConfigMap."""
        return f"streamplace-journal-{self.name}"

    @property
    def _folder(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/configmaps"

    def read(self) -> tuple[str, PatchJournal | None]:
        """Version of the ConfigMap, empty if it does not exist, and its journal."""
        try:
            answer = self.api.get(f"{self._folder}/{self.title}")
        except ApiRefusal as error:
            if error.missing == self.title:
                return "", None
            raise
        document = checked(_MAP, answer, f"ConfigMap {self.namespace}/{self.title}")
        text = (document.get("data") or {}).get(KEY)
        try:
            journal = None if text is None else PatchJournal.model_validate_json(text)
        except ValidationError:
            raise StoreError(
                f"ConfigMap {self.namespace}/{self.title} has a journal that cannot be read, so a "
                "change may be unfinished; check the specification, then delete the ConfigMap"
            ) from None
        return document["metadata"]["resourceVersion"], journal

    def write(
        self, version: str, uid: str, journal: PatchJournal | None, *, query: str = ""
    ) -> None:
        """Create the ConfigMap, or replace this version of it; ``None`` writes no journal."""
        owner = {"apiVersion": API_VERSION, "kind": DEPLOYMENT, "name": self.name, "uid": uid}
        metadata = {
            "name": self.title,
            "namespace": self.namespace,
            "labels": {"app.kubernetes.io/managed-by": "streamplace"},
            "ownerReferences": [owner],
        }
        data = {} if journal is None else {KEY: journal.model_dump_json()}
        document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
        if version:
            metadata["resourceVersion"] = version
            self.api.replace(f"{self._folder}/{self.title}{query}", document)
        else:
            self.api.create(f"{self._folder}{query}", document)

    def exchange(
        self,
        change: Callable[[PatchJournal | None], J],
        seconds: float = SILENCE_SECONDS,
    ) -> J:
        """Replace the journal by a function of it, and return the new one.

        The function is called again if another command was faster, or if no answer came.
        """
        deadline = monotonic() + seconds
        while True:
            try:
                version, stored = self.read()
            except FlinkError as error:
                self._await(error, deadline)
                continue
            journal = change(stored)
            owner = journal or stored
            assert owner is not None
            try:
                self.write(version, owner.uid, journal)
            except FlinkError as error:
                self._await(error, deadline)
            else:
                return journal

    def _await(self, error: FlinkError, deadline: float) -> None:
        """Wait for a moment; raise StoreError for other errors and after the deadline."""
        is_conflict = isinstance(error, ApiRefusal) and error.status == HTTPStatus.CONFLICT
        if monotonic() >= deadline or not (is_conflict or isinstance(error, NoAnswer)):
            raise StoreError(
                f"the journal of {self.namespace}/{self.name} cannot be read or written: {error}"
            ) from None
        sleep(KUBERNETES_POLL_SECONDS)

    def check(self, resource: FlinkResource) -> None:
        """Raise an error if a change has not ended, or if no journal can be written."""
        uid = resource.document["metadata"]["uid"]
        version, journal = self.read()
        if journal is not None and journal.uid == uid:
            raise journal.unfinished()
        if not version:
            self.write("", uid, None)
            version, _ = self.read()
        self.write(version, uid, None, query="?dryRun=All")

    def renew(self) -> None:
        """Renew the lease of the change if this process holds it."""
        version, journal = self.read()
        if journal is not None and journal.holder == Holder.current():
            renewed = journal.model_copy(update={"renewed": utc_now()})
            self.write(version, journal.uid, renewed)


@dataclass(slots=True, weakref_slot=True)
class PatchClaim:
    """The claim of this process on a change."""

    config_map: JournalMap
    journal: PatchJournal

    def __post_init__(self) -> None:
        keep_renewed(self, self.config_map.renew)

    @classmethod
    def begin(cls, api: KubernetesApi, journal: PatchJournal) -> "PatchClaim":
        """Write a new change; raise an error if another one of the resource has not ended."""
        journal = with_holder(journal)

        def begun(stored: PatchJournal | None) -> PatchJournal:
            if stored is not None and stored.uid == journal.uid and stored != journal:
                raise stored.unfinished()
            return journal

        config_map = JournalMap(api, journal.namespace, journal.name)
        return cls(config_map, config_map.exchange(begun))

    @classmethod
    def take(cls, api: KubernetesApi, namespace: str, name: str) -> "PatchClaim":
        """Claim an interrupted change; raise an error if there is none, or if it is held."""

        def taken(stored: PatchJournal | None) -> PatchJournal:
            if stored is None:
                raise SettingError(f"no change of {namespace}/{name} was interrupted")
            stored.refuse_held()
            return with_holder(stored)

        config_map = JournalMap(api, namespace, name)
        return cls(config_map, config_map.exchange(taken))

    def save(self, **changes: object) -> None:
        """Write the next step; raise TakenOver if another command holds the change now."""
        journal = self.journal.model_copy(update={"renewed": utc_now(), **changes})
        self._exchange(journal, SILENCE_SECONDS)
        self.journal = journal

    def leave(self) -> None:
        """Release the change for the next command; if Kubernetes is silent, its lease ends."""
        with suppress(StreamplaceError):
            self._exchange(self.journal.model_copy(update={"holder": None}), EFFECT_SECONDS)

    def end(self) -> None:
        """Delete the journal; raise StoreError if that is not possible."""
        with suppress(TakenOver):
            self._exchange(None, SILENCE_SECONDS)

    def _exchange(self, journal: PatchJournal | None, seconds: float) -> None:
        def changed(stored: PatchJournal | None) -> PatchJournal | None:
            if stored is None:
                raise TakenOver("another command has finished the change, so this one ends")
            if stored.holder not in (None, self.journal.holder):
                raise TakenOver(f"{stored.holder} continues the change, so this one ends")
            return journal

        self.config_map.exchange(changed, seconds)
