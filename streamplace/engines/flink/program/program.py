"""A job as it is submitted: its jars, its arguments, and its settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from streamplace.engines.flink.move.saving import Savepoint
from streamplace.engines.flink.program.jars import MAIN, check_jar, main_class
from streamplace.errors import PlacementError, SettingError
from streamplace.io.files import spot
from streamplace.model.messages import quoted


@dataclass(frozen=True, slots=True)
class Program:
    """The code and the settings of a job, without its placement."""

    jar: Path  # jar with the main class
    entry_class: str | None = None  # the main class, if it is not the one in the jar's manifest
    arguments: Sequence[str] = ()
    libraries: Sequence[Path] = ()  # further jars, which are submitted with it
    classpaths: Sequence[str] = ()  # URLs of classes that every machine of the cluster can read
    # Flink's settings for this job, by key.
    settings: Mapping[str, str] = field(default_factory=dict)
    # Default for operators whose parallelism neither the job nor the placement sets.
    parallelism: int | None = None
    # Maximum managed memory of the job on each TaskManager; by default all that is free.
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
        """Raise FormatError if a file is not a jar, or is damaged."""
        for jar in (self.jar, *self.libraries):
            check_jar(jar)
        if self.entry_class is None:
            main_class(self.jar)

    def with_settings(self, settings: Mapping[str, str]) -> "Program":
        """Return the same program with further settings; its own take precedence."""
        return replace(self, settings={**settings, **self.settings})

    def flink_settings(self, more: Mapping[str, str]) -> dict[str, str]:
        """Return all settings of a submission: those of the job, further ones, and its classpaths.

        >>> Program(Path("job.jar"), classpaths=["file:///a.jar"]).flink_settings({"a": "b"})
        {'a': 'b', 'pipeline.classpaths': 'file:///a.jar'}
        """
        paths = {"pipeline.classpaths": ";".join(self.classpaths)} if self.classpaths else {}
        return {**self.settings, **more, **paths}

    def run_request(
        self, savepoint: Savepoint | None = None, more: Mapping[str, str] | None = None
    ) -> dict[str, object]:
        """Body of the REST request that makes the pinning class run the job.

        ``more`` are settings besides those of the job. The jar is read for its main class alone,
        and only if that is not given: it may be on the cluster already, and have gone here.
        """
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
