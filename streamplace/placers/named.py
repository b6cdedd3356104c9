"""Placers by name, with options after colons, as on the command line."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from streamplace.errors import SettingError
from streamplace.model.message_text import quoted
from streamplace.model.paths import wrong
from streamplace.model.units import seconds
from streamplace.placers.registry import PLACERS, READABLE, Budget, Placer

MAX_INTEGER = 1_000_000
"""Largest magnitude of a whole number as an option: arrays of so many rows still fit in memory."""


def named_placer(text: str) -> Placer:
    """Parse a name with options after colons, such as ``metis:k=3`` or ``anneal:budget=5ms``.

    >>> named_placer("random:budget=5ms").budget
    Budget(seconds=0.005)
    >>> named_placer("anneal:evaluations=100").budget
    Budget(evaluations=100)
    """
    name, *settings = text.split(":")
    placer = PLACERS[name]
    options = {}
    named: set[str] = set()
    for setting in settings:
        option, equals, value = setting.partition("=")
        if not equals:
            raise SettingError(f"{quoted(text)} must be written NAME:OPTION=VALUE")
        if option in named:
            raise SettingError(
                f"option {quoted(option)} of placer {name!r} is given twice; drop one"
            )
        named.add(option)
        if option in ("budget", "evaluations"):
            placer = replace(placer, budget=_budget(placer.budget, option, value))
            continue
        if option not in placer.texts():
            takes = ", ".join([*placer.texts(), "budget", "evaluations"])
            raise SettingError(f"placer {name!r} has no option {quoted(option)}; it takes {takes}")
        options[option] = _converted(placer, option, value)
    return placer.with_options(**options)


def placer_names(texts: Iterable[str]) -> tuple[str, ...]:
    """Return names of placers, each once; raise SettingError for unknown ones.

    >>> placer_names(["metis", " anneal", "metis"])
    ('metis', 'anneal')
    """
    names = tuple(dict.fromkeys(map(str.strip, texts)))
    if not names:
        raise SettingError("no placer is named; name at least one, such as 'auto'")
    for placer in aliased_placers(names):
        named_placer(placer.spec)
    return names


class AliasedPlacer(NamedTuple):
    """A placer of a list: its alias, if any, and its name with options.

    >>> AliasedPlacer.read("mine=pilot:samples=0")
    AliasedPlacer(alias='mine', spec='pilot:samples=0')
    >>> AliasedPlacer.read("metis:k=3").label
    'metis:k=3'
    """

    alias: str | None
    spec: str

    @classmethod
    def read(cls, text: str) -> "AliasedPlacer":
        """Read ``ALIAS=NAME:OPTION=VALUE``, in which only the name is required."""
        before, equals, after = text.partition("=")
        return cls(before.strip(), after) if equals and ":" not in before else cls(None, text)

    @property
    def label(self) -> str:
        """Name of the placer in tables and plots."""
        return self.spec if self.alias is None else self.alias


def aliased_placers(texts: Iterable[str]) -> tuple[AliasedPlacer, ...]:
    """Read the placers of a list; raise SettingError for empty, repeated or reserved aliases."""
    placers = tuple(map(AliasedPlacer.read, texts))
    aliases: set[str] = set()
    for alias, spec in placers:
        if alias is None:
            continue
        if not alias:
            raise SettingError(f"{quoted('=' + spec)} has an empty alias; write ALIAS=PLACER")
        if alias in PLACERS:
            raise SettingError(
                f"the alias {quoted(alias)} is the name of a placer; choose another alias"
            )
        if alias in aliases:
            raise SettingError(f"the alias {quoted(alias)} is given twice; choose another alias")
        aliases.add(alias)
    return placers


def labels(texts: Iterable[str]) -> set[str]:
    """Names by which the placers of a list may be referred to: labels and specifications.

    >>> sorted(labels(["mine=pilot:samples=0", "metis"]))
    ['metis', 'mine', 'pilot:samples=0']
    """
    return {name for placer in aliased_placers(texts) for name in (placer.label, placer.spec)}


def label_of(name: str, texts: Iterable[str]) -> str:
    """Label of the placer with a label or a specification; the name itself if there is none.

    >>> label_of("metis:k=3", ["base=metis:k=3"])
    'base'
    """
    return {aliased.spec: aliased.label for aliased in aliased_placers(texts)}.get(name, name)


def with_weights(placer: Placer, weights: Path) -> Placer:
    """Return a learned placer with these weights."""
    if "weights" not in placer.defaults():
        learned = [name for name in PLACERS if "weights" in PLACERS[name].defaults()]
        raise SettingError(
            f"placer {placer.name!r} is not a learned placer; "
            f"weights are for {' or '.join(learned)}"
        )
    if placer.options.get("weights"):
        raise SettingError(f"weights of placer {placer.name!r} are given twice; drop one")
    return placer.with_options(weights=str(weights))


def _budget(budget: Budget | None, option: str, text: str) -> Budget:
    """Add a limit to the placer's own budget."""
    budget = budget or Budget(None)
    if option == "budget":
        return replace(budget, seconds=seconds(text))
    try:
        evaluations = int(text) if text.isdecimal() else 0
    except ValueError:  # Python rejects integers of thousands of digits
        evaluations = 0
    if evaluations < 1:
        raise SettingError(
            f"evaluations are {quoted(text)}; they must be a whole number, at least 1"
        )
    return replace(budget, evaluations=evaluations)


def _converted(placer: Placer, option: str, text: str) -> Any:
    """Parse the value of an option; ``none`` is allowed if the default is None."""
    kind, default = placer.kinds()[option], placer.defaults()[option]
    if default is None and text.lower() == "none":
        return None
    parse, wanted = READABLE[kind or str]
    try:
        value = parse(text)
    except (ValueError, KeyError):
        raise SettingError(f"option {option} is {quoted(text)}; it must be {wanted}") from None
    if kind is int and abs(value) > MAX_INTEGER:
        limits = f"between -{MAX_INTEGER} and {MAX_INTEGER}"
        raise SettingError(f"option {option} is {quoted(text)}; it must be {limits}")
    return value


def placer_of(placer: str | Placer) -> str | Placer:
    """Placer or its name; raise SettingError for anything else."""
    if isinstance(placer, str):
        named_placer(placer)
    elif not isinstance(placer, Placer):
        raise wrong("placer", placer, "a name, as in 'metis:k=3', or a Placer")
    return placer
