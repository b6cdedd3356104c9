"""A job and its devices, and spares in place of lost ones, on which it can be started again."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import quote

from streamplace.engines.flink.decide.candidates import occupied_devices
from streamplace.engines.flink.move.journal import Journal
from streamplace.engines.flink.move.move import RETENTION, Tell
from streamplace.engines.flink.move.others import same_place
from streamplace.engines.flink.move.saving import restored_path, suppress_missing
from streamplace.engines.flink.pin.fitting import check_cluster, fitted, left_without
from streamplace.engines.flink.pin.pinning import Vectors, all_devices, devices_of, without_devices
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.client import NoAnswer, Rest
from streamplace.errors import StreamplaceError
from streamplace.io.watch_store import WatchDecision, utc_now

Places = dict[str, list[str]]


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

        There must be others; see `without_devices`.
        """
        return replace(self, vectors=without_devices(self.vectors, lost))


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
    with suppress_missing():  # it takes no checkpoints
        return same_place(path, restored_path(rest, job))
    return False


def free_spares(rest: Rest, run: PlacedJob, named: Sequence[str], *, takes_free: bool) -> list[str]:
    """Devices that may replace lost ones now, in order.

    First those that the user has named, then those that were lost and have returned, then, if
    wanted, all others that no job uses exclusively.
    """
    offered, spares = rest.offered(), [*named, *run.stand_ins]
    possible = offered.keys() - run.devices
    if takes_free:
        spares += sorted(offered.keys() - set(spares))
        possible -= occupied_devices(rest, run.job)
    return [device for device in spares if device in possible]


def without_lost(
    rest: Rest, run: PlacedJob, lost: Sequence[str], named: Sequence[str], *, takes_free: bool
) -> tuple[PlacedJob, list[str]]:
    """Return a job with spares in place of lost devices, and those that nothing replaces.

    Where devices may be taken that nobody has named, the other devices of the job take over what
    there is no spare for.
    """
    free = free_spares(rest, run, named, takes_free=takes_free)
    new, left = run.without(dict(zip(lost, free, strict=False))), [*lost[len(free) :]]
    if takes_free and new.devices.difference(left):
        return (new.on_the_others(left) if left else new), []
    return new, left


def move_without_lost(rest: Rest, named: Sequence[str], journal: Journal) -> tuple[Places, Places]:
    """Placements after and before a move, each without lost devices if others are left for it."""

    def left(places: Places) -> Places:
        run = PlacedJob(journal.job, dict(places))
        if not (lost := sorted(run.devices.difference(rest.offered()))):
            return places
        new, awaited = without_lost(rest, run, lost, named, takes_free=True)
        vectors = run.vectors if awaited else new.vectors
        return {name: [*devices_of(vector)] for name, vector in vectors.items()}

    return left(journal.after), left(journal.before)


def unfit(rest: Rest, program: Program | None, run: PlacedJob) -> str | None:
    """Why a job does not fit on its devices, once it has left its present ones; None if it does.

    Raises NoAnswer when Flink does not answer.
    """
    most = None if program is None else program.managed_mb
    managers = left_without(rest, run.job)
    try:
        check_cluster(rest, run.vectors)
        fitted(rest, run.vectors, most, managers)
    except NoAnswer:
        raise
    except StreamplaceError as error:
        return str(error)
    return None


def unkept(rest: Rest, job: str, tell: Tell) -> str | None:
    """Why a job could not continue from its checkpoints with a spare; None if it could.

    A job without checkpoints has none to lose, and this is reported.
    """
    settings = None
    with suppress_missing():
        settings = rest.get(f"/jobs/{quote(job, safe='')}/checkpoints/config")
    if settings is None:
        tell(f"note: job {job} takes no checkpoints; it would start without state")
        return None
    retention = settings["externalization"]
    if "JobManager" in settings.get("checkpoint_storage", ""):
        return (
            f"job {job} keeps its checkpoints in the JobManager's memory, so that a spare "
            "could not go on from them; submit it with -D execution.checkpointing.dir=FOLDER"
        )
    if not retention["enabled"] or retention["delete_on_cancellation"]:
        return (
            f"job {job} deletes its checkpoints when it ends, so that a spare could not go "
            f"on from them; submit it with -D {RETENTION}=RETAIN_ON_CANCELLATION"
        )
    return None
