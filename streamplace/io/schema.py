"""Native file formats as typed dictionaries: validated in one pass, published as JSON Schema."""

from typing import Annotated, Any, Literal, NotRequired, TypeVar

from pydantic import ConfigDict, FailFast, Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from streamplace.errors import SettingError
from streamplace.model.cluster import MOST_DEVICES
from streamplace.model.devices import MOST_CORES
from streamplace.model.messages import quoted, suggestion
from streamplace.model.operators import MOST_KEY_GROUPS, MOST_SUBTASKS
from streamplace.model.placement import Discipline

STRICT = ConfigDict(extra="forbid", strict=True)
_T = TypeVar("_T")
_List = Annotated[list[_T], FailFast()]  # a file of a million faults is told the first
_Dict = Annotated[dict[str, _T], FailFast()]
Finite = Annotated[float, Field(allow_inf_nan=False)]
_Number = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Quantity = Annotated[float, Field(ge=0, allow_inf_nan=False)] | str


@with_config(STRICT)
class WindowJson(TypedDict):
    """A window: every ``advance`` s emits min(limit, base + factor · count) tuples."""

    size: Annotated[_Number, Field(description="length of the window in seconds")]
    advance: Annotated[_Number, Field(description="seconds between two evaluations")]
    base: NotRequired[Annotated[_Number, Field(description="tuples per evaluation, 1 by default")]]
    factor: NotRequired[
        Annotated[
            _Number, Field(description="additional tuples per tuple in the window, 0 by default")
        ]
    ]
    limit: NotRequired[
        Annotated[_Number, Field(description="maximum number of tuples per evaluation")]
    ]


@with_config(STRICT)
class OperatorJson(TypedDict):
    """An operator; one without incoming streams is a source and needs a rate."""

    name: str
    ipt: NotRequired[Annotated[_Number, Field(description="instructions per input tuple")]]
    payload: NotRequired[
        Annotated[
            _Quantity, Field(description="bytes per output tuple, or a string such as '12.5 kB'")
        ]
    ]
    rate: NotRequired[
        Annotated[_Quantity, Field(description="tuples/s that a source generates, or '10 k/s'")]
    ]
    parallelism: NotRequired[
        Annotated[int, Field(ge=1, le=MOST_SUBTASKS, description="number of subtasks")]
    ]
    max_parallelism: NotRequired[
        Annotated[
            int,
            Field(
                ge=0,
                le=MOST_KEY_GROUPS,
                description="number of key groups, or splits of a source, that are divided among "
                "the subtasks; 0, the default, for tuples that can be divided at will",
            ),
        ]
    ]
    kind: NotRequired[str]
    requires: NotRequired[Annotated[_List[str], Field(description="tags a device must have")]]
    memory: NotRequired[Annotated[_Quantity, Field(description="bytes, or '2 GB'")]]
    window: NotRequired[WindowJson]
    fires: NotRequired[
        Annotated[
            Literal["each", "all"],
            Field(description="once per tuple, or per set of one tuple from every input"),
        ]
    ]
    about: NotRequired[Annotated[str, Field(description="description for readers")]]


StreamJson = TypedDict(
    "StreamJson",
    {
        "from": str,
        "to": str,
        "selectivity": NotRequired[
            Annotated[_Number, Field(description="tuples here per output tuple of the sender, 1")]
        ],
        "payload": NotRequired[
            Annotated[
                _Quantity, Field(description="bytes per tuple, if not the payload of the sender")
            ]
        ],
        "partitioning": NotRequired[Literal["", "forward", "rebalance", "hash", "chained"]],
        "ipt": NotRequired[
            Annotated[
                _Number,
                Field(
                    description="instructions per tuple to hand it to another thread, half at "
                    "each end; none where the stream is chained"
                ),
            ]
        ],
        "input": NotRequired[
            Annotated[
                str, Field(description="input of an operator that fires all; one name, one input")
            ]
        ],
    },
)
with_config(STRICT)(StreamJson)


@with_config(STRICT)
class GraphJson(TypedDict):
    """A stream graph: operators and the streams between them, without cycles."""

    name: NotRequired[str]
    attributes: NotRequired[_Dict[str | int | Finite | bool]]
    fires: NotRequired[
        Annotated[
            Literal["each", "all"],
            Field(description="default for operators without a value; 'all' makes a task graph"),
        ]
    ]
    operators: _List[OperatorJson]
    streams: NotRequired[_List[StreamJson]]


@with_config(STRICT)
class ElementJson(TypedDict):
    """A processing element: the operators on one device."""

    pe: Annotated[int, Field(ge=0, description="its number")]
    device: str
    requires: NotRequired[Annotated[_List[str], Field(description="tags its operators require")]]
    operators: _List[str]


@with_config(STRICT)
class PlacementJson(TypedDict):
    """A placement: the device of every operator.

    Exports tell more; only `assignment` is read, and `parallelism` where jobs are started. What
    `place --json` prints is taken as well, and these fields of it are read.
    """

    about: NotRequired[Annotated[_List[str], Field(description="notes for readers")]]

    graph: NotRequired[Annotated[str, Field(description="name of the graph it is for")]]
    placer: NotRequired[Annotated[str, Field(description="placer that made it")]]
    objective: NotRequired[Annotated[str, Field(description="objective that it was evaluated by")]]
    value: NotRequired[
        Annotated[Finite, Field(description="value that it reaches by that objective")]
    ]
    relative_throughput: NotRequired[
        Annotated[_Number, Field(description="relative throughput that it reaches, 0 to 1")]
    ]
    bound: NotRequired[Annotated[Finite, Field(description="bound that no placement exceeds")]]
    answers: NotRequired[
        Annotated[str, Field(description="digest of the graph and the options, in data sets")]
    ]
    priority: NotRequired[
        Annotated[
            dict[str, Finite],
            Field(
                description="operator → priority: on each device, the operator with the highest "
                "priority runs first"
            ),
        ]
    ]
    queue: NotRequired[
        Annotated[
            Discipline,
            Field(
                description="'priority', as without it: of the ready, the highest runs first; "
                "'order': a device waits for the next in line even if another is ready"
            ),
        ]
    ]
    pes: NotRequired[Annotated[_List[ElementJson], Field(description="operators by device")]]
    colocate: NotRequired[Annotated[_List[_List[str]], Field(description="must share a device")]]
    exlocate: NotRequired[Annotated[_List[_List[str]], Field(description="must not share one")]]
    parallelism: NotRequired[
        Annotated[
            dict[str, Annotated[int, Field(ge=1, le=MOST_SUBTASKS)]],
            Field(description="number of subtasks of operators that have several"),
        ]
    ]
    max_parallelism: NotRequired[
        Annotated[
            dict[str, Annotated[int, Field(ge=1, le=MOST_KEY_GROUPS)]],
            Field(description="key groups by which tuples are dealt to the subtasks of operators"),
        ]
    ]
    assignment: Annotated[_Dict[str], Field(description="operator name → device name")]


@with_config(STRICT)
class DeviceToml(TypedDict):
    """One device, or ``count`` equal ones: name0, name1 and so on."""

    name: str
    count: NotRequired[Annotated[int, Field(ge=1, le=MOST_DEVICES)]]
    mips: NotRequired[
        Annotated[_Quantity, Field(description="speed of a core: a number in MIPS, or '2500 MIPS'")]
    ]
    cores: NotRequired[Annotated[int, Field(ge=1, le=MOST_CORES)]]
    reserved: NotRequired[
        Annotated[
            _Quantity,
            Field(
                description="MIPS of all its cores together that other processes take, such as Java"
            ),
        ]
    ]
    tags: NotRequired[_List[str]]
    memory: NotRequired[Annotated[_Quantity, Field(description="bytes, or '16 GB'")]]
    egress: NotRequired[
        Annotated[
            _Quantity, Field(description="maximum that its network card sends: bit/s, or '10 Gbps'")
        ]
    ]
    ingress: NotRequired[
        Annotated[_Quantity, Field(description="maximum that its network card receives")]
    ]
    watts: NotRequired[
        Annotated[_Number, Field(description="power of a busy core in excess of an idle one")]
    ]


LinkToml = TypedDict(
    "LinkToml",
    {
        "from": str,
        "to": str,
        "bandwidth": NotRequired[Annotated[_Quantity, Field(description="bit/s, or '100 Mbps'")]],
        "latency": NotRequired[Annotated[_Quantity, Field(description="seconds, or '20 ms'")]],
    },
)
with_config(STRICT)(LinkToml)


@with_config(STRICT)
class ClusterToml(TypedDict):
    """A cluster: devices, and links where they differ from the default."""

    devices: _List[DeviceToml]
    links: NotRequired[_List[LinkToml]]
    bandwidth: NotRequired[
        Annotated[_Quantity, Field(description="of every link not listed: bit/s, or '1000 Mbps'")]
    ]
    latency: NotRequired[
        Annotated[_Quantity, Field(description="of every link not listed: seconds, or '1 ms'")]
    ]
    overhead: NotRequired[
        Annotated[_Quantity, Field(description="core seconds per remote tuple, at either end")]
    ]
    overhead_per_byte: NotRequired[
        Annotated[_Quantity, Field(description="core seconds per remote byte, at either end")]
    ]
    gap: NotRequired[
        Annotated[
            _Quantity, Field(description="link seconds per remote tuple, in addition to its bytes")
        ]
    ]
    framing: NotRequired[
        Annotated[
            _Number, Field(description="bytes on the wire per byte of payload, in addition to it")
        ]
    ]
    headroom: NotRequired[
        Annotated[
            float,
            Field(
                ge=0, lt=1, description="share of every CPU, network card and link that stays free"
            ),
        ]
    ]
    joules_per_byte: NotRequired[
        Annotated[_Number, Field(description="energy of sending a byte over a link")]
    ]


@with_config(STRICT)
class OfferToml(TypedDict):
    """A type of machine that can be bought."""

    name: str
    price: Annotated[float, Field(description="per hour, in any currency")]
    mips: NotRequired[
        Annotated[_Quantity, Field(description="speed of a core: a number in MIPS, or '2500 MIPS'")]
    ]
    cores: NotRequired[Annotated[int, Field(ge=1, le=MOST_CORES)]]
    memory: NotRequired[Annotated[_Quantity, Field(description="bytes, or '16 GB'")]]
    egress: NotRequired[
        Annotated[
            _Quantity, Field(description="maximum that its network card sends: bit/s, or '10 Gbps'")
        ]
    ]
    ingress: NotRequired[
        Annotated[_Quantity, Field(description="maximum that its network card receives")]
    ]
    slots: NotRequired[
        Annotated[int, Field(ge=1, description="maximum number of subtasks on a machine")]
    ]
    tags: NotRequired[_List[str]]
    at_least: NotRequired[
        Annotated[
            int, Field(ge=0, le=MOST_DEVICES, description="machines that every plan has, 0 or more")
        ]
    ]
    at_most: NotRequired[
        Annotated[int, Field(ge=1, le=MOST_DEVICES, description="maximum number of machines")]
    ]


@with_config(STRICT)
class OffersToml(TypedDict):
    """Types of machines that can be bought, and their prices."""

    overhead: NotRequired[
        Annotated[_Quantity, Field(description="core seconds per remote tuple, at either end")]
    ]
    overhead_per_byte: NotRequired[
        Annotated[_Quantity, Field(description="core seconds per remote byte, at either end")]
    ]
    offers: Annotated[list[OfferToml], FailFast(), Field(min_length=1)]


@with_config(STRICT)
class ConstraintsToml(TypedDict):
    """What a placement must respect."""

    pin: NotRequired[Annotated[_Dict[str], Field(description="operator → device")]]
    colocate: NotRequired[_List[_List[str]]]
    exlocate: NotRequired[_List[_List[str]]]
    allowed: NotRequired[Annotated[_Dict[_List[str]], Field(description="operator → devices")]]


@with_config(STRICT)
class MovingJson(TypedDict):
    """What it takes to move operators, a row for each."""

    state: NotRequired[
        Annotated[
            _List[_Number],
            Field(
                description="bytes that each operator takes along when it moves; by default its "
                "memory"
            ),
        ]
    ]
    startup: NotRequired[
        Annotated[
            _List[_List[_Number]],
            Field(description="seconds to start, operators × devices; by default 0"),
        ]
    ]


@with_config(STRICT)
class ProblemJson(TypedDict):
    """A problem: a graph, and what is known of where it is placed."""

    graph: GraphJson
    cluster: NotRequired[Annotated[ClusterToml, Field(description="the keys of a cluster file")]]
    constraints: NotRequired[
        Annotated[ConstraintsToml, Field(description="the keys of a constraints file")]
    ]
    seconds: NotRequired[
        Annotated[
            _List[_List[_Number]],
            Field(description="core seconds per tuple, operators × devices, where not ipt / MIPS"),
        ]
    ]
    moving: NotRequired[MovingJson]


FILES: dict[str, type] = {
    "graph": GraphJson,
    "problem": ProblemJson,
    "placement": PlacementJson,
    "cluster": ClusterToml,
    "constraints": ConstraintsToml,
    "offers": OffersToml,
}


def json_schema(name: str) -> dict[str, Any]:
    """JSON Schema of a file format.

    >>> sorted(json_schema("placement")["required"])
    ['assignment']
    """
    if name not in FILES:
        hint = suggestion(name, FILES) or "."
        raise SettingError(f"there is no schema {quoted(name)}{hint} Known: {', '.join(FILES)}")
    return TypeAdapter(FILES[name]).json_schema()
