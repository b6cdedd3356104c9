"""A job as it is submitted: its jars, its arguments, and what Flink is told with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from streamplace.engines.flink.jars import MAIN, check_jar, main_class
from streamplace.engines.flink.state import Savepoint
from streamplace.errors import PlacementError, SettingError
from streamplace.io.files import spot
from streamplace.model.messages import quoted


@dataclass(frozen=True, slots=True)
class Program:
    """What runs, and how; the placement says where.

    Attributes
    ----------
    jar
        Holds the main class.
    entry_class
        The main class, where it is not the one that the jar names.
    libraries
        Further jars, which travel with it.
    classpaths
        URLs of classes that every machine of the cluster can read by itself.
    settings
        Flink's settings for this job, by key.
    parallelism
        Of operators whose number of subtasks neither the job nor the placement says.
    managed_mb
        Managed memory that the job takes of each TaskManager at most; else all that is free.
    """

    jar: Path
    entry_class: str | None = None
    arguments: Sequence[str] = ()
    libraries: Sequence[Path] = ()
    classpaths: Sequence[str] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    parallelism: int | None = None
    managed_mb: int | None = None

    @property
    def entry(self) -> str:
        """The main class."""
        entry = self.entry_class or main_class(self.jar)
        if entry is None:
            raise PlacementError(
                f"{spot(self.jar)}: has no main class in its manifest; give --entry-class"
            )
        return entry

    def check(self) -> None:
        """Raise FormatError for a jar that is none, or is damaged."""
        for jar in (self.jar, *self.libraries):
            check_jar(jar)
        if self.entry_class is None:
            main_class(self.jar)

    def with_settings(self, settings: Mapping[str, str]) -> "Program":
        """Return the same program with further settings; its own count more."""
        return replace(self, settings={**settings, **self.settings})

    def flink_settings(self, more: Mapping[str, str]) -> dict[str, str]:
        """Return what Flink is told with the job: its settings, further ones, and its classpaths.

        >>> Program(Path("job.jar"), classpaths=["file:///a.jar"]).flink_settings({"a": "b"})
        {'a': 'b', 'pipeline.classpaths': 'file:///a.jar'}
        """
        paths = {"pipeline.classpaths": ";".join(self.classpaths)} if self.classpaths else {}
        return {**self.settings, **more, **paths}

    def run_request(
        self, savepoint: Savepoint | None = None, more: Mapping[str, str] | None = None
    ) -> dict[str, object]:
        """What Flink's REST is asked, to have the pinning class run the job.

        Parameters
        ----------
        more
            Settings besides the job's own.
        """
        self.check()
        request: dict[str, object] = {
            "entryClass": MAIN,
            "programArgsList": [self.entry, *self.arguments],
        }
        if settings := self.flink_settings(more or {}):
            request["flinkConfiguration"] = settings
        if self.parallelism is not None:
            request["parallelism"] = self.parallelism
        if savepoint is not None:
            request["savepointPath"] = savepoint.path
            request["allowNonRestoredState"] = savepoint.allow_non_restored
        return request


def parse_settings(texts: Sequence[str]) -> dict[str, str]:
    """Settings by key, from texts such as ``key=value``.

    >>> parse_settings(["pipeline.name=shop", "a=b=c"])
    {'pipeline.name': 'shop', 'a': 'b=c'}
    """
    pairs = [text.partition("=") for text in texts]
    for text, (key, equals, _) in zip(texts, pairs, strict=True):
        if not key or not equals:
            raise SettingError(f"{quoted(text)} is not a setting; write KEY=VALUE")
    return {key: value for key, _, value in pairs}
