"""Choice of a job if the user names none."""

from streamplace.engines.flink.rest.client import Rest
from streamplace.errors import SettingError
from streamplace.model.messages import listed, shown


def other_jobs(rest: Rest, job: str) -> list[str]:
    """Ids of the other jobs that have not ended."""
    return [other for other in rest.live_jobs() if other != job]


def only_job(rest: Rest, given: str | None = None) -> str:
    """Id of the given job, else of the only one that has not ended."""
    if given is not None:
        return given
    states, live = rest.jobs(), rest.live_jobs()
    if len(live) > 1:
        raise SettingError(
            f"{len(live)} jobs are running: {listed(live)}; choose one with --job ID"
        )
    if not live:
        others = "; ".join(f"{shown(name)} is {shown(states[name])}" for name in [*states][:8])
        raise SettingError(
            f"no job is running{others and f' ({others})'}; start one, or name one with --job ID"
        )
    return live[0]
