"""Instances of the library and what is known of them: the documents of its folder."""

from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field

from streamplace.io.field_types import STRICT, Finite

SizeClass = Literal["toy", "easy", "medium", "hard", "open"]
SIZES: tuple[SizeClass, ...] = ("toy", "easy", "medium", "hard", "open")
"""Classes of entries, by how long it takes to prove that the best known solution is the best."""
PROOF_SECONDS: tuple[tuple[SizeClass, float], ...] = (("toy", 0.01), ("easy", 0.1), ("medium", 1.0))
"""Processor seconds below which a proof makes an entry one of a size class; others are hard."""
Split = Literal["public", "hidden"]
ObjectiveName = Literal["throughput", "makespan", "plan"]
SENSES: dict[ObjectiveName, int] = {"throughput": 1, "makespan": -1, "plan": -1}
"""1 where a larger value is better, else -1."""


@dataclass(frozen=True, slots=True)
class LibraryInstance:
    """An instance, as the manifest describes it.

    Attributes
    ----------
    origin
        Where it comes from, such as the family and its parameters.
    family
        Class of instances to which it belongs; by default the first word of its name.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    operators: Annotated[int, Field(ge=1)]
    devices: Annotated[int, Field(ge=1)]
    origin: str = ""
    family: str = ""
    split: Split = "public"


@dataclass(frozen=True, slots=True)
class LibraryManifest:
    """The manifest: all instances, and the checksums of all files."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    instances: dict[str, LibraryInstance]
    sha256: dict[str, str] = field(default_factory=dict)
    seed: int | None = None
    split: Split = "public"


@dataclass(frozen=True, slots=True)
class LibraryEntry:
    """The best known solution of an instance for an objective, and its proven bound.

    Attributes
    ----------
    value, bound
        Relative throughput, seconds of one pass, or the price of a plan. No solution is better than
        the bound.
    closed
        Whether the value equals the bound but for rounding, so that it is the best possible.
    proof
        Kind of the certificate that proves the bound.
    by, seconds, date
        Who or what found the solution, in how many processor seconds, and when.
    proof_seconds
        Processor seconds of the proof that closes the entry: to make and to check it.
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
        """Instance and objective, as people write them.

        >>> LibraryEntry("a-0", "makespan", 2.0, 1.0, False, "path", "me").name
        'a-0/makespan'
        """
        return f"{self.instance}/{self.objective}"

    @property
    def size(self) -> SizeClass:
        """Size class: open, or else by the time of the proof; without a stated time, hard.

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
        """1 where a larger value is better, else -1."""
        return SENSES[self.objective]

    @property
    def gap(self) -> float:
        """Distance between value and bound as a share of the value.

        >>> LibraryEntry("a-0", "makespan", 2.0, 1.0, False, "path", "me").gap
        0.5
        """
        return abs(self.bound - self.value) / self.value if self.value else abs(self.bound)

    def document(self) -> dict[str, Any]:
        """Fields of its line in ``best.jsonl``; those that nobody stated are left out."""
        return {name: value for name, value in asdict(self).items() if value is not None}
