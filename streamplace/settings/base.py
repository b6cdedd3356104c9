"""Settings of a verb: typed fields, and how each of them was named by the user."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from inspect import get_annotations
from pathlib import Path
from typing import Any, Self, TypeVar, cast

from pydantic import BaseModel, ConfigDict, PrivateAttr, ValidationError

from streamplace.errors import FormatError, SettingError, StreamplaceError, UnitError
from streamplace.model.message_text import quoted, suggestion
from streamplace.settings.option import OptionField

P = TypeVar("P")
PLAIN_REASONS = {
    "bool_parsing": "it must be true or false",
    "string_type": "it must be a text",
    "int_parsing": "it must be a whole number",
    "path_type": "it must be a path",
    "tuple_type": "it must be a list",
}
"""Reasons in place of messages of pydantic with terms of Python."""


class VerbSettings(BaseModel):
    """Base of the settings of a verb; see `streamplace.settings.option` for their fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)  # the help needs none
    _inputs: Mapping[str, Any] = PrivateAttr(default_factory=dict)
    _names: Mapping[str, str] = PrivateAttr(default_factory=dict)
    _file: Path | None = None

    @classmethod
    def of(cls, keywords: Mapping[str, Any]) -> Self:
        """Settings of the keywords of a Python function; other names, as of locals, are ignored.

        Keywords that equal their defaults count as left out.
        """
        inputs = {
            name: keywords[name]
            for name in cls.model_fields
            if name in keywords and not cls._is_default(name, keywords[name])
        }
        return cls._validated(inputs, {name: name for name in cls.model_fields})

    @classmethod
    def of_command(cls, typed: Mapping[str, Any], file: Path | None = None) -> Self:
        """Settings of a command line, completed by a settings file."""
        stored = {} if file is None else cls._read(file)
        names = {name: "-o" for name in cls.marked("output")}
        names |= {name: name for name in cls.marked("argument")}
        for name, option in cls.options().items():
            if name in stored and name not in typed:
                names[name] = f"{option.key_of(name)} in {file}"
            elif option.words:
                names[name] = option.words[-1]
            else:
                names[name] = f"'{option.key_of(name)}' in a file for --settings"
        settings = cls._validated({**stored, **typed}, names)
        settings._file = file
        return settings

    def completed(self, stored: Mapping[str, Any], names: Mapping[str, str]) -> Self:
        """These settings, with stored values by field where the user gave none.

        ``names``: names of the fields in the place where they are stored.
        """
        added = {field: value for field, value in stored.items() if field not in self.inputs}
        all_names = {**self._names, **{field: names[field] for field in added}}
        try:
            settings = type(self).model_validate({**added, **self.inputs})
        except ValidationError as error:
            raise _refusal(error, all_names) from None
        settings._inputs, settings._names, settings._file = self._inputs, all_names, self._file
        return settings

    @classmethod
    def options(cls) -> dict[str, OptionField]:
        """Options and keys of settings files by field; fields of the verb precede shared ones."""
        return cls.marked("option")

    @classmethod
    def marked(cls, kind: str) -> dict[str, Any]:
        """Fields of a kind (``option``, ``argument`` or ``output``) with their descriptions."""
        names = (name for owner in cls.__mro__ for name in get_annotations(owner))
        extras: dict[str, Any] = {
            name: cls.model_fields[name].json_schema_extra or {}
            for name in dict.fromkeys(names)
            if name in cls.model_fields
        }
        return {name: extra[kind] for name, extra in extras.items() if kind in extra}

    @property
    def inputs(self) -> Mapping[str, Any]:
        """Values by field, as the user wrote them; fields that were left out are missing."""
        return self._inputs

    @property
    def file(self) -> Path | None:
        """Settings file that the user named."""
        return self._file

    def name(self, field: str) -> str:
        """Name of a field for this user: an option, a keyword, or a key of a file."""
        return self._names[field]

    def check(self) -> None:
        """Raise SettingError for settings that do not go together."""

    def exclude(self, field: str, other: str) -> None:
        """Raise SettingError if both fields are set."""
        if field in self.inputs and other in self.inputs:
            raise SettingError(
                f"{self.name(field)} and {self.name(other)} exclude each other; drop one"
            )

    def need(self, needed: str, *fields: str) -> None:
        """Raise SettingError for the first field that is set without ``needed``."""
        for field in fields if needed not in self.inputs else ():
            self.refuse(field, f"has no effect without {self.name(needed)}; add it, or drop {{}}")

    def check_set(self, field: str) -> None:
        """Raise SettingError if a field is not set."""
        if field not in self.inputs:
            raise SettingError(f"{self.name(field)} is missing; add it")

    def refuse(self, field: str, reason: str) -> None:
        """Raise SettingError if a field is set; ``{}`` in the reason stands for its name."""
        if field in self.inputs:
            raise SettingError(f"{self.name(field)} {reason.format(self.name(field))}")

    def part(self, kind: type[P], **others: Any) -> P:
        """Parameter object of a layer below: its fields are the fields of the same names."""
        names = [f.name for f in fields(cast(Any, kind)) if f.name in type(self).model_fields]
        return kind(**{name: getattr(self, name) for name in names} | others)

    def files(self) -> Iterator[Path]:
        """Input files that the user named."""
        outputs = self.marked("output")
        for value in (value for name, value in self.inputs.items() if name not in outputs):
            values = value if isinstance(value, tuple) else (value,)
            yield from (path for path in values if isinstance(path, Path))

    @classmethod
    def _is_default(cls, field: str, value: Any) -> bool:
        default = cls.model_fields[field].default
        plain = isinstance(value, bool | int | float | str | None) and type(value) is type(default)
        return value is default or (plain and bool(value == default))

    @classmethod
    def _validated(cls, inputs: Mapping[str, Any], names: Mapping[str, str]) -> Self:
        try:
            settings = cls.model_validate(inputs)
        except ValidationError as error:
            raise _refusal(error, names) from None
        settings._inputs, settings._names = inputs, names
        settings.check()
        return settings

    @classmethod
    def _read(cls, file: Path) -> dict[str, Any]:
        """Values of a settings file by field; raise FormatError for unknown keys."""
        from streamplace.io.files import read_toml, spot

        options = cls.options()
        fields = {option.key_of(name): name for name, option in options.items()}
        values: dict[str, Any] = {}
        for key, value in read_toml(file).items():
            field = fields.get(key.replace("_", "-"))
            if field is None:
                hint = suggestion(key, fields) or f"; known are {', '.join(sorted(fields))}"
                raise FormatError(f"{spot(file)}: {quoted(key)} is not a known setting{hint}")
            if field in values:
                raise FormatError(f"{spot(file)}: {quoted(key)} is set twice; drop one")
            is_file = isinstance(value, str) and options[field].value == "FILE"
            values[field] = Path(value) if is_file else value
        return values


def _refusal(error: ValidationError, names: Mapping[str, str]) -> StreamplaceError:
    """First error of a validation in one line, with the user's name of the field."""
    fault = error.errors(include_url=False)[0]
    name = names[str(fault["loc"][0])]
    cause = fault.get("ctx", {}).get("error")
    if not isinstance(cause, StreamplaceError):
        words = str(cause or fault["msg"]).replace("Input should be", "it must be")
        reason = PLAIN_REASONS.get(fault["type"], words)
        return SettingError(f"{name} is {quoted(fault['input'])}; {reason}")
    if not isinstance(cause, SettingError | UnitError) or name in str(cause):
        return cause
    return type(cause)(f"{name}: {cause}")
