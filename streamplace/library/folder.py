"""The folder of the library, with the paths of its instances, solutions and certificates."""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from streamplace.errors import FormatError, SettingError
from streamplace.io.files import (
    is_file,
    is_folder,
    read_bytes,
    read_lines,
    reading,
    spot,
    write_text,
)
from streamplace.io.parsing import parse_as
from streamplace.library.entries import SIZES, LibraryEntry, LibraryInstance, LibraryManifest
from streamplace.model.messages import quoted, suggestion

if TYPE_CHECKING:
    from streamplace.model.problem import Problem

PACKAGE = Path(__file__).parent
CHECKOUT = PACKAGE.parents[1]
VARIABLE = "STREAMPLACE_LIBRARY"
MANIFEST, BEST = "manifest.json", "best.jsonl"


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

    def family(self, name: str) -> str:
        """Class of an instance."""
        return self.instance(name).family or name.partition("-")[0]

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
        asked, classes, size_classes = set(names), set(families), set(sizes)
        for name in asked:
            self.instance(name)
        self._check_classes(classes, size_classes)
        entries = tuple(
            entry
            for entry in self.entries
            if (not asked or entry.instance in asked)
            and (not classes or self.family(entry.instance) in classes)
            and (not size_classes or entry.size in size_classes)
            and (objective is None or entry.objective == objective)
            and (closed is None or entry.closed == closed)
        )
        if not entries:
            raise SettingError("no entry of the library meets these conditions; drop one of them")
        return entries

    def _check_classes(self, families: set[str], sizes: set[str]) -> None:
        every = sorted({self.family(name) for name in self.manifest.instances})
        for kind, asked, choices in (("class", families, every), ("size", sizes, SIZES)):
            for name in sorted(asked - set(choices)):
                raise SettingError(
                    f"there is no {kind} {quoted(name)}{suggestion(name, choices)}; choose one of "
                    f"{', '.join(choices)}"
                )

    def instance_file(self, name: str) -> Path:
        """File of an instance."""
        self.instance(name)
        return self._stored(self.folder / name / "instance.json")

    def solution_file(self, entry: LibraryEntry) -> Path:
        """File of the best known solution of an entry."""
        return self._stored(self.folder / entry.instance / f"{entry.objective}.solution.json")

    def certificate_file(self, entry: LibraryEntry) -> Path:
        """File of the certificate of an entry's bound."""
        return self._stored(self.folder / entry.instance / f"{entry.objective}.certificate.json")

    def files(self, entry: LibraryEntry) -> list[Path]:
        """Instance, solution and certificate of an entry, in order of the checker's arguments."""
        return [
            self.instance_file(entry.instance),
            self.solution_file(entry),
            self.certificate_file(entry),
        ]

    def changed_file(self, entry: LibraryEntry) -> str | None:
        """Name of a file of an entry that has not its checksum in the manifest, if there is one."""
        for file in (*self.files(entry), self.folder / BEST):
            name = file.relative_to(self.folder).as_posix()
            stated = self.manifest.sha256.get(name)
            if stated is not None and is_file(file) and stated != _checksum(file):
                return name
        return None

    def digest(self, name: str) -> str:
        """SHA-256 of the content of an instance."""
        return sha256(read_bytes(self.instance_file(name))).hexdigest()

    def problem(self, name: str) -> "Problem":
        """Problem of a throughput or makespan instance, for placers.

        Operators and devices are named after their numbers in the instance: ``v0``, ``d0``.
        """
        from streamplace.library.documents import instance_problem

        path = self.instance_file(name)
        return instance_problem(read_bytes(path), spot(path))

    @staticmethod
    def _stored(path: Path) -> Path:
        packed = path.with_name(path.name + ".gz")
        return packed if not is_file(path) and is_file(packed) else path


def open_library(folder: str | PathLike[str] | None = None) -> Library:
    """Open the library of a folder.

    Parameters
    ----------
    folder
        By default the folder in the variable ``STREAMPLACE_LIBRARY``, or else the library of this
        version of streamplace.
    """
    own = _part("instances", CHECKOUT / "datasets" / "library")
    path = Path(folder or os.environ.get(VARIABLE) or own)
    if not is_folder(path):
        raise FormatError(f"{spot(path)}: is not a folder; name the folder of a library")
    if not is_file(path / MANIFEST) or not is_file(path / BEST):
        raise FormatError(
            f"{spot(path)}: is no library: it needs {MANIFEST} and {BEST}; name another folder"
        )
    return Library(path)


def write_checksums(folder: Path, files: Iterable[Path]) -> None:
    """Store the SHA-256 of files in the manifest of a library."""
    path = folder / MANIFEST
    document = json.loads(read_bytes(path))
    sums = document.setdefault("sha256", {})
    for file in files:
        sums[file.relative_to(folder).as_posix()] = _checksum(file)
    write_text(path, json.dumps(document, indent=1) + "\n")


def _checksum(file: Path) -> str:
    with reading(file):
        return sha256(file.read_bytes()).hexdigest()


def checker_file() -> Path:
    """Path of the checker, in the installed package or in the checkout."""
    return _part("checker", CHECKOUT / "checker") / "check.py"


def _part(packaged: str, in_checkout: Path) -> Path:
    """Folder within the installed package, or else within the checkout."""
    folder = PACKAGE / packaged
    return folder if folder.is_dir() else in_checkout
