"""The folder of the library: its instances, entries, manifest, and the paths of all files."""

import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, get_args

from pydantic import ConfigDict, Field

from streamplace.errors import FormatError, SettingError
from streamplace.io.fields import STRICT, Finite
from streamplace.io.files import is_file, is_folder, read_bytes, read_lines, reading, spot
from streamplace.io.parsing import parse_as
from streamplace.library.documents import ObjectiveName, instance_problem
from streamplace.model.message_text import quoted, suggestion

if TYPE_CHECKING:
    from streamplace.model.problem import Problem

PACKAGE = Path(__file__).parent
CHECKOUT = PACKAGE.parents[1]
VARIABLE = "STREAMPLACE_LIBRARY"
MANIFEST, BEST = "manifest.json", "best.jsonl"
FILE_NAME = r"^\w[\w.+-]*$"
"""Names of instances and of their folders."""

SizeClass = Literal["toy", "easy", "medium", "hard", "open"]
SIZES: tuple[SizeClass, ...] = get_args(SizeClass)
"""Size classes of entries, by the time of the proof that the best known solution is optimal."""
PROOF_SECONDS: tuple[tuple[SizeClass, float], ...] = (("toy", 0.01), ("easy", 0.1), ("medium", 1.0))
"""Processor seconds of a proof below which an entry is in a size class; others are hard."""
Split = Literal["public", "hidden"]


@dataclass(frozen=True, slots=True)
class LibraryInstance:
    """An instance in the manifest."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    operators: Annotated[int, Field(ge=1)]
    devices: Annotated[int, Field(ge=1)]
    origin: str = ""  # source of the instance, such as a family and its parameters


@dataclass(frozen=True, slots=True)
class LibraryManifest:
    """The manifest: all instances, and the checksums of all files."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    instances: dict[Annotated[str, Field(pattern=FILE_NAME)], LibraryInstance]
    sha256: dict[str, str] = field(default_factory=dict)
    seed: int | None = None
    split: Split = "public"


@dataclass(frozen=True, slots=True)
class LibraryEntry:
    """The best known solution of an instance for an objective, and its proven bound.

    Examples
    --------
    >>> entry = LibraryEntry("a-0", "makespan", 2.0, 1.0, False, "path", "me")
    >>> entry.name, entry.size, entry.gap
    ('a-0/makespan', 'open', 0.5)
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    instance: str
    objective: ObjectiveName
    # Relative throughput, seconds of one pass, or price of a plan. No solution is better than the
    # bound.
    value: Finite
    bound: Finite
    closed: bool  # whether the value equals the bound except for rounding, and so is optimal
    proof: str  # kind of the certificate that proves the bound
    by: str  # author or program of the solution
    seconds: Finite | None = None  # processor seconds of the solution
    date: str | None = None  # of the solution
    # Processor seconds to make and to check the proof that closes the entry.
    proof_seconds: Finite | None = None

    @property
    def name(self) -> str:
        """Instance and objective as one text."""
        return f"{self.instance}/{self.objective}"

    @property
    def size(self) -> SizeClass:
        """Size class: open, or by the time of the proof; without a stated time, hard."""
        if not self.closed:
            return "open"
        seconds = self.proof_seconds
        classes = (size for size, limit in PROOF_SECONDS if seconds is not None and seconds < limit)
        return next(classes, "hard")

    @property
    def gap(self) -> float:
        """Distance between value and bound as a share of the value."""
        return abs(self.bound - self.value) / self.value if self.value else abs(self.bound)

    def document(self) -> dict[str, Any]:
        """Stated fields of its line in ``best.jsonl``."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class Library:
    """The instances of a folder with their best known solutions and bounds.

    Examples
    --------
    >>> from streamplace.library import open_library
    >>> library = open_library()
    >>> library.entry("random-00", "throughput").closed
    True
    >>> library.problem("random-00").n_operators
    6
    """

    folder: Path

    @cached_property
    def manifest(self) -> LibraryManifest:
        """Instances and checksums."""
        path = self.folder / MANIFEST
        return parse_as(LibraryManifest, read_bytes(path), spot(path))

    @cached_property
    def entries(self) -> tuple[LibraryEntry, ...]:
        """All entries, in order of ``best.jsonl``."""
        path = self.folder / BEST
        entries = tuple(
            parse_as(LibraryEntry, line, f"{spot(path)}:{number}")
            for number, line in read_lines(path)
        )
        for entry in entries:
            if entry.instance not in self.manifest.instances:
                raise FormatError(
                    f"{spot(path)}: instance {quoted(entry.instance)} is not in {MANIFEST}; "
                    "make the library again"
                )
        return entries

    def instance(self, name: str) -> LibraryInstance:
        """Instance by its name."""
        instances = self.manifest.instances
        if name not in instances:
            hint = suggestion(name, instances) or "; see: streamplace library list"
            raise SettingError(f"the library has no instance {quoted(name)}{hint}")
        return instances[name]

    def entry(self, instance: str, objective: str) -> LibraryEntry:
        """Entry of an instance for an objective."""
        (entry,) = self.select([instance], objective=objective)
        return entry

    def select(
        self,
        names: Iterable[str] = (),
        *,
        families: Iterable[str] = (),
        sizes: Iterable[str] = (),
        objective: str | None = None,
        closed: bool | None = None,
    ) -> tuple[LibraryEntry, ...]:
        """Entries that meet all conditions; absent conditions select all.

        Parameters
        ----------
        names
            Names of instances.
        families, sizes
            Classes of instances, and size classes.
        objective
            ``throughput``, ``makespan`` or ``plan``.
        closed
            True for entries whose solution is proven optimal, False for the others.
        """
        names, families, sizes = set(names), set(families), set(sizes)
        for name in names:
            self.instance(name)
        every = sorted({class_of(name) for name in self.manifest.instances})
        for kind, chosen, choices in (("class", families, every), ("size", sizes, SIZES)):
            for name in sorted(chosen - set(choices)):
                raise SettingError(
                    f"there is no {kind} {quoted(name)}{suggestion(name, choices)}; choose one of "
                    f"{', '.join(choices)}"
                )
        entries = tuple(
            entry
            for entry in self.entries
            if (not names or entry.instance in names)
            and (not families or class_of(entry.instance) in families)
            and (not sizes or entry.size in sizes)
            and (objective is None or entry.objective == objective)
            and (closed is None or entry.closed == closed)
        )
        if not entries:
            raise SettingError("no entry of the library meets these conditions; drop one of them")
        return entries

    def instance_file(self, name: str) -> Path:
        """File of an instance."""
        self.instance(name)
        return self.folder / name / "instance.json"

    def files(self, entry: LibraryEntry) -> list[Path]:
        """Instance, solution and certificate of an entry, in order of the checker's arguments."""
        instance = self.instance_file(entry.instance)
        parts = ("solution", "certificate")
        return [instance, *(instance.with_name(f"{entry.objective}.{p}.json") for p in parts)]

    def changed_file(self, entry: LibraryEntry) -> str | None:
        """Name of a file of an entry whose checksum differs from the manifest; None without one."""
        for file in (*self.files(entry), self.folder / BEST):
            name = file.relative_to(self.folder).as_posix()
            stated = self.manifest.sha256.get(name)
            if stated is not None and is_file(file):
                with reading(file):
                    if stated != sha256(file.read_bytes()).hexdigest():
                        return name
        return None

    def problem(self, name: str) -> "Problem":
        """Problem of a throughput or makespan instance, for placers.

        Operators and devices are named after their numbers in the instance: ``v0``, ``d0``.
        """
        path = self.instance_file(name)
        return instance_problem(read_bytes(path), spot(path))


def class_of(name: str) -> str:
    """Class of an instance: the first word of its name."""
    return name.partition("-")[0]


def open_library(folder: str | PathLike[str] | None = None) -> Library:
    """Open the library of a folder.

    Parameters
    ----------
    folder
        By default the folder in the variable ``STREAMPLACE_LIBRARY``, or else the library of this
        version of streamplace.
    """
    shipped = _part("instances", CHECKOUT / "datasets" / "library")
    path = Path(folder or os.environ.get(VARIABLE) or shipped)
    if not is_folder(path):
        raise FormatError(f"{spot(path)}: is not a folder; name the folder of a library")
    if not is_file(path / MANIFEST) or not is_file(path / BEST):
        raise FormatError(
            f"{spot(path)}: is no library: it needs {MANIFEST} and {BEST}; name another folder"
        )
    return Library(path)


def checker_file() -> Path:
    """Path of the checker, in the installed package or in the checkout."""
    return _part("checker", CHECKOUT / "checker") / "check.py"


def _part(packaged: str, in_checkout: Path) -> Path:
    """Folder within the installed package, or else within the checkout."""
    folder = PACKAGE / packaged
    return folder if folder.is_dir() else in_checkout
