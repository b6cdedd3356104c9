"""Settings of a verb: fields with their option, and where each of them was given."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, PrivateAttr, ValidationError
from pydantic_core import CoreSchema, core_schema

from streamplace.errors import FormatError, SettingError, StreamplaceError, UnitError
from streamplace.model.message_text import quoted, suggestion
from streamplace.settings.option import WHAT, OptionField


@dataclass(frozen=True, slots=True)
class FieldKind:
    """A kind of value: its conversion, and how the help calls it.

    ``convert`` raises ValueError with what the value must be, or an error of streamplace.
    """

    convert: Callable[[Any], Any]
    metavar: str | Callable[[], str] = "TEXT"
    form: Literal["one", "several", "flag", "file"] = "one"
    given: OptionField | None = None  # how the field is given, other than in Python

    def option(self, flag: str, help: str, group: str = WHAT, *, key: str = "") -> Self:
        """Values of this kind, given as an option or in a settings file."""
        return replace(self, given=OptionField(flag, help, group, key))

    def key(self, name: str = "") -> Self:
        """Values of this kind, given in a settings file, perhaps by another name."""
        return self.option("", "", key=name)

    def __get_pydantic_core_schema__(self, source: Any, _: GetCoreSchemaHandler) -> CoreSchema:
        schema = core_schema.no_info_plain_validator_function(self.convert)
        return core_schema.nullable_schema(schema) if type(None) in get_args(source) else schema


class VerbSettings(BaseModel):
    """Base of the settings of a verb.

    Fields that cannot be given otherwise are keywords of Python alone: what they take is an object.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    _given: Mapping[str, Any] = PrivateAttr(default_factory=dict)
    _names: Mapping[str, str] = PrivateAttr(default_factory=dict)

    @classmethod
    def of(cls, keywords: Mapping[str, Any]) -> Self:
        """Settings of the keywords of a Python function, which may be among its ``locals()``.

        Keywords that equal their defaults count as not given.
        """
        given = {
            name: keywords[name]
            for name in cls.model_fields
            if name in keywords and not cls._is_usual(name, keywords[name])
        }
        return cls._made(given, {name: name for name in cls.model_fields})

    @classmethod
    def of_command(cls, typed: Mapping[str, Any], file: Path | None = None) -> Self:
        """Settings of a command line, and of a settings file for what is not typed."""
        fields = cls.options()
        names = {
            name: option.words[-1] or f"{_written(option.key or name)!r} in a file for --settings"
            for name, option in fields.items()
        }
        stored = {} if file is None else cls._read(file)
        names |= {
            name: f"{_written(fields[name].key or name)} in {file}"
            for name in stored.keys() - typed.keys()
        }
        return cls._made({**stored, **typed}, names)

    @classmethod
    def options(cls) -> dict[str, OptionField]:
        """Fields that can be given without Python: first the verb's own, then the shared."""
        names = (name for owner in cls.__mro__ for name in vars(owner).get("__annotations__", ()))
        kinds = {name: cls.kind(name) for name in dict.fromkeys(names) if name in cls.model_fields}
        return {name: kind.given for name, kind in kinds.items() if kind.given is not None}

    @classmethod
    def kind(cls, name: str) -> FieldKind:
        """Kind of a field."""
        return next(mark for mark in cls.model_fields[name].metadata if isinstance(mark, FieldKind))

    @property
    def given(self) -> Mapping[str, Any]:
        """What was given, by field, as it was written."""
        return self._given

    def name(self, field: str) -> str:
        """Field as it was given, or as it could be: an option, a keyword, or a key of a file."""
        return self._names[field]

    def check(self) -> None:
        """Raise SettingError for settings that do not go together."""

    def exclude(self, one: str, other: str) -> None:
        """Raise SettingError if two fields are given of which one is enough."""
        if one in self.given and other in self.given:
            raise SettingError(
                f"{self.name(one)} and {self.name(other)} exclude each other; drop one"
            )

    def need(self, needed: str, *names: str) -> None:
        """Raise SettingError for the first of some fields without effect where one is missing."""
        for name in names if needed not in self.given else ():
            self.refuse(name, f"has no effect without {self.name(needed)}; add it, or drop {{}}")

    def refuse(self, name: str, reason: str) -> None:
        """Raise SettingError if a field is given; ``{}`` in the reason stands for it."""
        if name in self.given:
            called = self.name(name)
            raise SettingError(f"{called} {reason.format(called)}")

    @classmethod
    def _is_usual(cls, name: str, value: Any) -> bool:
        usual = cls.model_fields[name].default
        plain = isinstance(value, bool | int | float | str | None) and type(value) is type(usual)
        return value is usual or (plain and bool(value == usual))

    @classmethod
    def _made(cls, given: Mapping[str, Any], names: Mapping[str, str]) -> Self:
        try:
            settings = cls.model_validate(given)
        except ValidationError as error:
            raise _fault(error, names) from None
        settings._given, settings._names = given, names
        settings.check()
        return settings

    @classmethod
    def _read(cls, file: Path) -> dict[str, Any]:
        """Values of a settings file by field; raise FormatError for unknown keys."""
        from streamplace.io.files import read_toml, spot

        fields = {option.key or name: name for name, option in cls.options().items()}
        found = {}
        for written, value in read_toml(file).items():
            known = written.replace("-", "_")
            if known not in fields:
                hint = suggestion(written, fields) or f"; known are {', '.join(sorted(fields))}"
                raise FormatError(f"{spot(file)}: {quoted(written)} is not a known setting{hint}")
            is_file = isinstance(value, str) and cls.kind(fields[known]).form == "file"
            found[fields[known]] = Path(value) if is_file else value
        return found

    def files(self) -> Iterator[Path]:
        """Files that are given."""
        return (value for value in self.given.values() if isinstance(value, Path))


def _written(field: str) -> str:
    """Key of a settings file."""
    return field.replace("_", "-")


def _fault(error: ValidationError, names: Mapping[str, str]) -> StreamplaceError:
    """First error of a model, with the name of its field as it was given."""
    fault = error.errors(include_url=False)[0]
    name = names[str(fault["loc"][0])]
    cause = fault.get("ctx", {}).get("error")
    if not isinstance(cause, StreamplaceError):
        wanted = f"it must be {cause}" if cause else "it cannot be None"
        return SettingError(f"{name} is {quoted(fault['input'])}; {wanted}")
    if not isinstance(cause, SettingError | UnitError) or name in str(cause):
        return cause
    return type(cause)(f"{name}: {cause}")
