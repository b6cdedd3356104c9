"""A job and its devices, and the decision to start it with spares in place of some of them."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from streamplace.engines.flink.move.copies import same_place
from streamplace.engines.flink.move.state import restored_path
from streamplace.engines.flink.pin.pinning import Vectors, all_devices, devices_of
from streamplace.engines.flink.rest.client import Refusal, Rest
from streamplace.io.watch_store import WatchDecision, utc_now


@dataclass(frozen=True, slots=True)
class PlacedJob:
    """A job and its devices."""

    job: str
    vectors: Vectors
    # Device of the placement → the spare that replaces it.
    stand_ins: Mapping[str, str] = field(default_factory=dict)
    # Device → address of its TaskManager when the job was started, if known.
    addresses: Mapping[str, str] = field(default_factory=dict)

    @property
    def devices(self) -> set[str]:
        """Devices on which it is placed."""
        return all_devices(self.vectors)

    def without(self, stand_ins: Mapping[str, str]) -> "PlacedJob":
        """Return the same job with some of its devices replaced."""
        vectors: dict[str, list[str] | str] = {
            name: stand_ins.get(vector, vector)
            if isinstance(vector, str)
            else [stand_ins.get(device, device) for device in vector]
            for name, vector in self.vectors.items()
        }
        origins = {new: old for old, new in self.stand_ins.items()}
        new = {origins.get(lost, lost): spare for lost, spare in stand_ins.items()}
        return replace(self, vectors=vectors, stand_ins={**self.stand_ins, **new})

    def on_the_others(self, lost: Collection[str]) -> "PlacedJob":
        """Return the same job with the subtasks of lost devices on its others, evenly.

        There must be others. Operators that were on one device stay on one, as TaskManagers may be
        configured for whole operators only.
        """
        taken = Counter(d for vector in self.vectors.values() for d in devices_of(vector))
        left = sorted(self.devices.difference(lost))

        def elsewhere(device: str, number: int = 1) -> str:
            if device not in lost:
                return device
            found = min(left, key=lambda one: taken[one])
            taken[found] += number
            return found

        vectors: dict[str, list[str] | str] = {}
        for name, vector in self.vectors.items():
            devices = devices_of(vector)
            if len(set(devices)) == 1:
                found = elsewhere(devices[0], len(devices))
                vectors[name] = found if isinstance(vector, str) else [found] * len(devices)
            else:
                vectors[name] = [elsewhere(device) for device in devices]
        return replace(self, vectors=vectors)


def replacement(before: PlacedJob, after: PlacedJob, path: str | None) -> WatchDecision:
    """Decision to start a job on other devices than lost ones, written before it is carried out."""
    new = {
        before.stand_ins.get(origin, origin): spare
        for origin, spare in after.stand_ins.items()
        if before.stand_ins.get(origin) != spare
    }
    left = sorted(before.devices - after.devices - new.keys())
    where = ", ".join(f"{spare} for {lost}" for lost, spare in new.items())
    where += f"{where and ', '}none for {', '.join(left)}" if left else ""
    return WatchDecision(
        utc_now(),
        "replace",
        before.job,
        path or "",
        plain(after.vectors),
        (len(before.devices), len(after.devices)),
        f"lost TaskManagers: {where}" if where else "a lost TaskManager is back",
    )


def plain(vectors: Vectors) -> dict[str, list[str] | str]:
    """Placement as a decision keeps it."""
    return {name: v if isinstance(v, str) else [*v] for name, v in vectors.items()}


def continues(rest: Rest, job: str, before: str, path: str | None) -> bool:
    """Whether a job was started in place of another one, from a savepoint or checkpoint of it."""
    if not path or job == before:
        return False
    try:
        return same_place(path, restored_path(rest, job))
    except Refusal:  # it takes no checkpoints
        return False
