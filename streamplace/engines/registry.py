"""Exports: registered functions that write a placement in the format of an engine."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from streamplace.engines.deployment import Deployment
from streamplace.errors import FormatError
from streamplace.io.files import make_folder, write_texts
from streamplace.model.message_text import quoted
from streamplace.registry import Registry

Files = Mapping[str, str]
"""Contents by file name, relative to the folder of the export."""

Exporter = Callable[[Deployment], str | Files]
PlacementReader = Callable[[bytes, str], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """A format that placements can be exported to."""

    name: str
    summary: str
    suffix: str  # suffix of the single file that it writes; empty if it writes a folder of files
    write: Exporter  # deployment → text of the file, or texts of the folder's files
    # Reads operator → device from the content of a file and its name for errors; None for a format
    # that cannot be read back.
    read: PlacementReader | None = None
    of: str = ""  # required attribute of the graph, such as "torch", with the source of its import
    # Whether a placement of subtasks must name every device of the cluster, even unused ones.
    all_devices: bool = False
    keeps_order: bool = False  # whether it contains the order in which devices run operators

    def __repr__(self) -> str:
        return f"<ExportFormat {self.name}>"

    def files(self, deployment: Deployment) -> Files:
        """Contents by file name; a single file has the name of the graph's placement."""
        graph = deployment.problem.graph
        if self.of and self.of not in graph.attributes:
            raise FormatError(
                f"{self.name} needs a graph that was imported from {self.of}, and "
                f"{quoted(graph.name)} was not; import one with: streamplace import {self.of}"
            )
        written = self.write(deployment)
        return {f"placement{self.suffix}": written} if isinstance(written, str) else written

    def texts_at(self, target: Path, files: Files) -> dict[Path, str]:
        """Texts by path: of the one file, or of several in a folder."""
        return {target if self.suffix else target / name: text for name, text in files.items()}

    def save(self, texts: Mapping[Path, str]) -> None:
        """Write the files of an export, with their folders if it has several."""
        if not self.suffix:
            for folder in dict.fromkeys(path.parent for path in texts):
                make_folder(folder)
        write_texts(texts)

    def loss(self, deployment: Deployment) -> str:
        """Sentence on parts of the placement that the format omits; empty if there are none."""
        if self.keeps_order or deployment.placement.priority is None:
            return ""
        keeping = ", ".join(name for name in EXPORTS if EXPORTS[name].keeps_order)
        return (
            f"{self.name} does not carry the order in which devices run their operators; "
            f"these do: {keeping}"
        )


EXPORTS: Registry[ExportFormat] = Registry("streamplace.engines", "export")


def export(
    name: str,
    *,
    suffix: str = "",
    read: PlacementReader | None = None,
    of: str = "",
    all_devices: bool = False,
    keeps_order: bool = False,
) -> Callable[[Exporter], Exporter]:
    """Register an export; the first line of its docstring describes it."""

    def made(summary: str, write: Exporter) -> ExportFormat:
        return ExportFormat(name, summary, suffix, write, read, of, all_devices, keeps_order)

    return EXPORTS.decorator(name, made)
