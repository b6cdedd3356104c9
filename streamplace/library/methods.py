"""Methods that are measured on the library: placers, and programs that use files."""

import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from streamplace.errors import SettingError
from streamplace.model.messages import quoted

PLACEHOLDERS = ("problem", "answer", "objective", "seconds", "seed")
NEEDED = ("problem", "answer")


@dataclass(frozen=True, slots=True)
class MethodCall:
    """One run of a method: its files, objective, time limit and seed."""

    problem: Path
    answer: Path
    objective: str
    seconds: float
    seed: int


class Method(Protocol):
    """A method that places problems by a command."""

    @property
    def name(self) -> str:
        """Name in results and tables."""
        ...

    def command(self, call: MethodCall) -> list[str]:
        """Command of one run, as words."""
        ...


@dataclass(frozen=True, slots=True)
class PlacerMethod:
    """A registered placer, with options after colons.

    >>> PlacerMethod("anneal").command(MethodCall(Path("p"), Path("a"), "makespan", 1.0, 0))[1:4]
    ['-P', '-m', 'streamplace.library.placer_program']
    """

    placer: str

    @property
    def name(self) -> str:
        """Name of the placer."""
        return self.placer

    def command(self, call: MethodCall) -> list[str]:
        """Command of one run, as words."""
        setting = {
            "placer": self.placer,
            "objective": call.objective,
            "seconds": call.seconds,
            "seed": call.seed,
        }
        module = "streamplace.library.placer_program"
        words = [str(call.problem), str(call.answer), json.dumps(setting)]
        # -P: no modules from the working folder, which may be untrusted
        return [sys.executable, "-P", "-m", module, *words]


@dataclass(frozen=True, slots=True)
class ProgramMethod:
    """A program that reads a problem file and writes a placement file.

    >>> program = ProgramMethod("mine", "./mine {problem} {answer} --seed {seed}")
    >>> program.command(MethodCall(Path("p.json"), Path("a.json"), "makespan", 1.0, 7))
    ['./mine', 'p.json', 'a.json', '--seed', '7']
    """

    name: str
    template: str

    def __post_init__(self) -> None:
        if missing := [key for key in NEEDED if f"{{{key}}}" not in self.template]:
            raise SettingError(
                f"the command {quoted(self.template)} lacks {{{missing[0]}}}; write it as in "
                "'./mine {problem} {answer}'"
            )
        try:
            shlex.split(self.template)
        except ValueError as error:
            raise SettingError(
                f"the command {quoted(self.template)} cannot be read: {error}; correct the quotes"
            ) from None

    def command(self, call: MethodCall) -> list[str]:
        """Command of one run, as words."""
        values = {
            "problem": str(call.problem),
            "answer": str(call.answer),
            "objective": call.objective,
            "seconds": f"{call.seconds:g}",
            "seed": str(call.seed),
        }
        words = shlex.split(self.template)
        for key in PLACEHOLDERS:
            words = [word.replace(f"{{{key}}}", values[key]) for word in words]
        return words


def named_program(text: str) -> ProgramMethod:
    """Parse ``NAME=COMMAND``, or a command that is named after its first word.

    >>> named_program("mine=python mine.py {problem} {answer}").name
    'mine'
    >>> named_program("bin/mine {problem} {answer}").name
    'mine'
    """
    name, equals, command = text.partition("=")
    if equals and name.strip() and not set(name) & set(" /{}'\""):
        return ProgramMethod(name.strip(), command)
    words = text.split()
    return ProgramMethod(Path(words[0]).name if words else "", text)
