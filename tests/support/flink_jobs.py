"""Jobs that run on a real Flink, submitted as others do: without a placement."""

from collections.abc import Mapping
from pathlib import Path

from streamplace.engines.flink.rest.client import Rest


def submitted(
    rest: Rest, jar: Path, entry: str, *arguments: str, settings: Mapping[str, str] | None = None
) -> str:
    """Id of a job of which every subtask runs, by its main class."""
    request = {
        "entryClass": entry,
        "programArgsList": [*arguments],
        "flinkConfiguration": dict(settings or {}),
    }
    job: str = rest.post(f"/jars/{rest.upload(jar)}/run", request)["jobid"]
    rest.wait_running(job)
    return job
