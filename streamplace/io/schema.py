"""The native file formats, as typed dictionaries: validated in one pass, published as JSON Schema."""

from functools import cache
from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from streamplace.errors import FormatError, SettingError

_STRICT = ConfigDict(extra="forbid", strict=True)
_Finite = Annotated[float, Field(allow_inf_nan=False)]


def _number(description: str, *, least: float = 0.0) -> Any:
    """Finite number of at least ``least``."""
    return Annotated[float, Field(ge=least, allow_inf_nan=False, description=description)]


def _quantity(description: str) -> Any:
    """Finite number in SI units, or a text with a unit."""
    return Annotated[
        Annotated[float, Field(ge=0, allow_inf_nan=False)] | str, Field(description=description)
    ]


@with_config(_STRICT)
class WindowJson(TypedDict):
    """A window: every ``advance`` s emits min(limit, base + factor · count) tuples."""

    size: _number("seconds of tuples it looks at")
    advance: _number("seconds between two evaluations")
    base: NotRequired[_number("tuples per evaluation, 1 by default")]
    factor: NotRequired[_number("further tuples per tuple in the window, 0 by default")]
    limit: NotRequired[_number("most tuples per evaluation")]


@with_config(_STRICT)
class OperatorJson(TypedDict):
    """An operator; one without incoming streams is a source and needs a rate."""

    name: str
    ipt: NotRequired[_number("instructions per input tuple")]
    payload: NotRequired[_quantity("bytes per output tuple, or a text such as '12.5 kB'")]
    rate: NotRequired[_quantity("tuples/s that a source generates, or '10 k/s'")]
    parallelism: NotRequired[Annotated[int, Field(ge=1, description="number of subtasks")]]
    kind: NotRequired[str]
    requires: NotRequired[Annotated[list[str], Field(description="tags a device must have")]]
    memory: NotRequired[_quantity("bytes, or '2 GB'")]
    window: NotRequired[WindowJson]


StreamJson = with_config(_STRICT)(
    TypedDict(
        "StreamJson",
        {
            "from": str,
            "to": str,
            "selectivity": NotRequired[_number("tuples here per output tuple of the sender, 1")],
            "payload": NotRequired[_quantity("bytes per tuple, where not the sender's payload")],
            "partitioning": NotRequired[Literal["", "forward", "rebalance", "hash"]],
        },
    )
)


@with_config(_STRICT)
class GraphJson(TypedDict):
    """A stream graph: operators and the streams between them, without cycles."""

    name: NotRequired[str]
    attributes: NotRequired[dict[str, str | int | _Finite | bool]]
    operators: list[OperatorJson]
    streams: NotRequired[list[StreamJson]]  # type: ignore[valid-type]


@with_config(_STRICT)
class PlacementJson(TypedDict):
    """A placement: the device of every operator."""

    graph: NotRequired[Annotated[str, Field(description="name of the graph it is for")]]
    placer: NotRequired[Annotated[str, Field(description="who made it")]]
    relative_throughput: NotRequired[_number("what it reaches, 0 to 1")]
    assignment: Annotated[dict[str, str], Field(description="operator name → device name")]


@with_config(_STRICT)
class DeviceToml(TypedDict):
    """One device, or ``count`` equal ones named name0, name1, …"""

    name: str
    count: NotRequired[Annotated[int, Field(ge=1, le=10_000)]]
    mips: NotRequired[_quantity("speed of a core: a number in MIPS, or '2500 MIPS'")]
    cores: NotRequired[Annotated[int, Field(ge=1)]]
    tags: NotRequired[list[str]]
    memory: NotRequired[_quantity("bytes, or '16 GB'")]
    egress: NotRequired[_quantity("what its network card sends at most: bit/s, or '10 Gbps'")]
    ingress: NotRequired[_quantity("what its network card receives at most")]


LinkToml = with_config(_STRICT)(
    TypedDict(
        "LinkToml",
        {
            "from": str,
            "to": str,
            "bandwidth": NotRequired[_quantity("bit/s, or '100 Mbps'")],
            "latency": NotRequired[_quantity("seconds, or '20 ms'")],
        },
    )
)


@with_config(_STRICT)
class ClusterToml(TypedDict):
    """A cluster: devices, and links where they differ from the default."""

    devices: list[DeviceToml]
    links: NotRequired[list[LinkToml]]  # type: ignore[valid-type]
    bandwidth: NotRequired[_quantity("of every link not listed: bit/s, or '1000 Mbps'")]
    latency: NotRequired[_quantity("of every link not listed: seconds, or '1 ms'")]
    overhead: NotRequired[_quantity("core seconds per remote tuple, at both ends")]
    gap: NotRequired[_quantity("link seconds per remote tuple, besides its bytes")]


@with_config(_STRICT)
class ConstraintsToml(TypedDict):
    """What a placement must respect."""

    pin: NotRequired[Annotated[dict[str, str], Field(description="operator → device")]]
    colocate: NotRequired[list[list[str]]]
    exlocate: NotRequired[list[list[str]]]
    allowed: NotRequired[Annotated[dict[str, list[str]], Field(description="operator → devices")]]


FILES: dict[str, type] = {
    "graph": GraphJson,
    "placement": PlacementJson,
    "cluster": ClusterToml,
    "constraints": ConstraintsToml,
}


def json_schema(name: str) -> dict[str, Any]:
    """JSON Schema of a file format.

    >>> sorted(json_schema("placement")["required"])
    ['assignment']
    """
    if name not in FILES:
        raise SettingError(f"there is no schema {name!r}. Known: {', '.join(FILES)}")
    return _adapter(name).json_schema()


def parse_json(name: str, content: bytes, where: str) -> Any:
    """Content of a JSON document of the named format; ``where`` stands in the error."""
    try:
        return _adapter(name).validate_json(content)
    except ValidationError as error:
        raise FormatError(f"{where}: {_first_fault(error)}") from None


def parse_tables(name: str, tables: dict[str, Any], where: str) -> Any:
    """Return tables that a TOML reader returned, checked against the named format."""
    try:
        return _adapter(name).validate_python(tables)
    except ValidationError as error:
        raise FormatError(f"{where}: {_first_fault(error)}") from None


@cache
def _adapter(name: str) -> TypeAdapter[Any]:
    return TypeAdapter(FILES[name])


def _first_fault(error: ValidationError) -> str:
    """Place, value and remedy of the first fault, in one line."""
    fault = error.errors(include_url=False, include_context=False)[0]
    path = "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}"
        for part in fault["loc"]
        if part not in ("float", "str", "int", "bool", "constrained-float")
    ).lstrip(".")
    message = fault["msg"].replace("Input should", "it should").replace("\n", " ")
    if fault["type"] == "json_invalid":
        return message
    if fault["type"] == "extra_forbidden":
        return f"{path} is not a known field; correct or remove it"
    if fault["type"] == "missing":
        return f"{path} is missing; add it"
    value = repr(fault["input"])
    shown = value if len(value) <= 60 else value[:57] + "..."
    return f"{path or 'the document'} is {shown}; {message}"
