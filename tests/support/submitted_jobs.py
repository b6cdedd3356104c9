"""Jobs that run on a real Flink: submitted as others do, without a placement, and moved."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.move.move import FlinkMove
from streamplace.engines.flink.move.settings import MoveSettings
from streamplace.engines.flink.move.settling import Settling
from streamplace.engines.flink.pin.pinning import Vectors
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.rest.client import Rest

TALLY: Vectors = {
    "numbers": ["dev-0"],
    "Map": ["dev-1"],
    "KeyedProcess": ["dev-0", "dev-1"],
    "Process": ["dev-0", "dev-1"],
    "Writer": ["dev-0", "dev-1"],
    "TumblingEventTimeWindows": ["dev-1", "dev-1"],
    "Process (2)": ["dev-1", "dev-1"],
    "Writer (2)": ["dev-0", "dev-0"],
}
"""Where tests put the subtasks of TallyJob."""


def submitted(
    rest: Rest, jar: Path, entry: str, *arguments: str, settings: Mapping[str, str] | None = None
) -> str:
    """Id of a job of which every subtask runs, by its main class."""
    request: dict[str, Any] = {"entryClass": entry, "programArgsList": [*arguments]}
    if settings:
        request["flinkConfiguration"] = dict(settings)
    job: str = rest.post(f"/jars/{rest.upload(jar)}/run", request)["jobid"]
    rest.wait_running(job)
    return job


def mover(
    rest: Rest,
    flink: Flink,
    program: Program,
    folder: Path,
    tell: Callable[[str], None] = lambda _: None,
) -> FlinkMove:
    """What moves a job by savepoints in a folder, and does not watch it afterwards."""
    saved = (folder / "saved").as_uri()
    return FlinkMove(rest, flink, program, tell, MoveSettings(saved, settling=Settling(0.0)))
