"""How fields are given: options of commands in groups, and keys of settings files."""

from dataclasses import dataclass

WHAT, WHERE, HOW_LONG, OUTPUT = "What", "Where", "How long", "Output"
GROUPS = (WHAT, WHERE, HOW_LONG, OUTPUT)
"""Groups of options in the help, in their order."""


@dataclass(frozen=True, slots=True)
class OptionField:
    """How a field is given: as an option, or only in a settings file if it has no ``flag``."""

    flag: str  # words of the option, with slashes between them
    help: str
    group: str = WHAT
    key: str = ""  # in a settings file, if it is not the name of the field

    @property
    def words(self) -> list[str]:
        """Words of the option, the longest last."""
        return self.flag.split("/")
