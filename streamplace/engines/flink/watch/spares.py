"""Spares: devices that may replace lost ones, and whether the job fits on them."""

from collections.abc import Sequence

from streamplace.engines.flink.decide.candidates import occupied_devices
from streamplace.engines.flink.pin.fitting import check_cluster, fitted, left_without
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.client import NoAnswer, Rest
from streamplace.engines.flink.watch.placed_job import PlacedJob
from streamplace.errors import StreamplaceError


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


def unfit(rest: Rest, program: Program | None, run: PlacedJob) -> str | None:
    """Why a job does not fit on its devices, once it has left its present ones; None if it does.

    Raises
    ------
    NoAnswer
        When Flink does not answer.
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
