"""Documents of the library's folder: instances, entries and the manifest."""

from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field

from streamplace.io.fields import STRICT, Finite

SizeClass = Literal["toy", "easy", "medium", "hard", "open"]
SIZES: tuple[SizeClass, ...] = ("toy", "easy", "medium", "hard", "open")
"""Size classes of entries, by the time of the proof that the best known solution is optimal."""
PROOF_SECONDS: tuple[tuple[SizeClass, float], ...] = (("toy", 0.01), ("easy", 0.1), ("medium", 1.0))
"""Processor seconds of a proof below which an entry is in a size class; others are hard."""
Split = Literal["public", "hidden"]
ObjectiveName = Literal["throughput", "makespan", "plan"]
SENSES: dict[ObjectiveName, int] = {"throughput": 1, "makespan": -1, "plan": -1}
"""1 if larger values are better, else -1."""


@dataclass(frozen=True, slots=True)
class LibraryInstance:
    """An instance in the manifest."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    operators: Annotated[int, Field(ge=1)]
    devices: Annotated[int, Field(ge=1)]
    origin: str = ""  # source of the instance, such as a family and its parameters
    family: str = ""  # class of the instance; by default the first word of its name
    split: Split = "public"


FILE_NAME = r"^\w[\w.+-]*$"
"""Names of instances, which are those of their folders."""


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

    Attributes
    ----------
    value, bound
        Relative throughput, seconds of one pass, or price of a plan. No solution is better than
        the bound.
    closed
        Whether the value equals the bound except for rounding, and so is optimal.
    proof
        Kind of the certificate that proves the bound.
    by, seconds, date
        Author or program of the solution, its processor seconds, and its date.
    proof_seconds
        Processor seconds to make and to check the proof that closes the entry.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    instance: str
    objective: ObjectiveName
    value: Finite
    bound: Finite
    closed: bool
    proof: str
    by: str
    seconds: Finite | None = None
    date: str | None = None
    proof_seconds: Finite | None = None

    @property
    def name(self) -> str:
        """Instance and objective as one text.

        >>> LibraryEntry("a-0", "makespan", 2.0, 1.0, False, "path", "me").name
        'a-0/makespan'
        """
        return f"{self.instance}/{self.objective}"

    @property
    def size(self) -> SizeClass:
        """Size class: open, or by the time of the proof; without a stated time, hard.

        >>> LibraryEntry("a-0", "makespan", 2.0, 1.0, False, "path", "me").size
        'open'
        """
        if not self.closed:
            return "open"
        spent = self.proof_seconds
        classes = (size for size, most in PROOF_SECONDS if spent is not None and spent < most)
        return next(classes, "hard")

    @property
    def sense(self) -> int:
        """1 if larger values are better, else -1."""
        return SENSES[self.objective]

    @property
    def gap(self) -> float:
        """Distance between value and bound as a share of the value.

        >>> LibraryEntry("a-0", "makespan", 2.0, 1.0, False, "path", "me").gap
        0.5
        """
        return abs(self.bound - self.value) / self.value if self.value else abs(self.bound)

    def document(self) -> dict[str, Any]:
        """Fields of its line in ``best.jsonl``, without those that are not stated."""
        return {name: value for name, value in asdict(self).items() if value is not None}
