"""Native file formats as typed dictionaries: validated in one pass, published as JSON Schema."""

from typing import Annotated, Any, Literal, Required

from pydantic import FailFast, Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from streamplace.errors import SettingError
from streamplace.io.fields import STRICT, Amount, Finite, ListOf, Quantity, TableOf, doc
from streamplace.model.cluster import MAX_DEVICES
from streamplace.model.columns import FieldRule, rules_of
from streamplace.model.devices import MAX_CORES
from streamplace.model.message_text import quoted, suggestion
from streamplace.model.operators import MAX_KEY_GROUPS, MAX_SUBTASKS, Operators
from streamplace.model.placement import Discipline
from streamplace.model.streams import Streams
from streamplace.model.units import MAX_VALUE

Speed = Annotated[Quantity, doc("speed of a core: a number in MIPS, or '2500 MIPS'")]
Cores = Annotated[int, Field(ge=1, le=MAX_CORES, description="number of cores, 1 by default")]
Tags = Annotated[ListOf[str], doc("what it offers to operators that require it, such as a GPU")]
Reserved = Annotated[
    Quantity, doc("MIPS of all its cores together that other processes take, such as Java")
]
Memory = Annotated[Quantity, doc("bytes, or '16 GB'")]
Egress = Annotated[Quantity, doc("maximum that its network card sends: bit/s, or '10 Gbps'")]
Ingress = Annotated[Quantity, doc("maximum that its network card receives")]
PerTuple = Annotated[Quantity, doc("core seconds per remote tuple, at either end")]
PerByte = Annotated[Quantity, doc("core seconds per remote byte, at either end")]
Fires = Literal["each", "all"]


@with_config(STRICT)
class DeviceToml(TypedDict, total=False):
    """One device, or ``count`` equal ones: name0, name1 and so on."""

    name: Required[
        Annotated[str, doc("its own, or the beginning of the names of several equal ones")]
    ]
    count: Annotated[int, Field(ge=1, le=MAX_DEVICES, description="number of equal devices")]
    mips: Speed
    cores: Cores
    reserved: Reserved
    tags: Tags
    memory: Memory
    egress: Egress
    ingress: Ingress
    watts: Annotated[Amount, doc("power of a busy core in excess of an idle one")]
    price: Annotated[Amount, doc("per hour, in any currency; for plans and the objective cost")]


LinkToml = TypedDict(
    "LinkToml",
    {
        "from": Required[Annotated[str, doc("device, or offer, that sends")]],
        "to": Required[Annotated[str, doc("device, or offer, that receives")]],
        "bandwidth": Annotated[Quantity, doc("'100 Mbps', or at least 100000 bit/s")],
        "latency": Annotated[Quantity, doc("seconds, or '20 ms'")],
    },
    total=False,
)
with_config(STRICT)(LinkToml)


@with_config(STRICT)
class ClusterToml(TypedDict, total=False):
    """A cluster: devices, and links where they differ from the default."""

    devices: Required[Annotated[ListOf[DeviceToml], doc("all devices")]]
    links: Annotated[ListOf[LinkToml], doc("in one direction each")]
    bandwidth: Annotated[
        Quantity, doc("of every link not listed: bit/s (100000 at least), or '1000 Mbps'")
    ]
    latency: Annotated[Quantity, doc("of every link not listed: seconds, or '1 ms'")]
    overhead: PerTuple
    overhead_per_byte: PerByte
    gap: Annotated[Quantity, doc("link seconds per remote tuple, in addition to its bytes")]
    framing: Annotated[Amount, doc("bytes on the wire per byte of payload, in addition to it")]
    headroom: Annotated[
        float,
        Field(
            ge=0,
            lt=1,
            description="share of unreserved CPU, network cards and links that stays free",
        ),
    ]
    joules_per_byte: Annotated[Amount, doc("energy of sending a byte over a link")]


@with_config(STRICT)
class OfferToml(TypedDict, total=False):
    """A type of machine that can be bought, or is owned."""

    name: Required[
        Annotated[str, doc("the machines of a plan are called name-0, name-1 and so on")]
    ]
    price: Annotated[
        float, doc("per hour, in any currency; by default, that of its cores and its memory")
    ]
    cpu: Annotated[
        float,
        Field(
            gt=0,
            le=MAX_CORES,
            description="cores of the default speed, such as 0.25, in place of mips and cores",
        ),
    ]
    mips: Speed
    cores: Cores
    memory: Memory
    egress: Egress
    ingress: Ingress
    slots: Annotated[int, Field(ge=1, description="number of slots of a machine")]
    tags: Tags
    reserved: Reserved
    at_least: Annotated[
        int, Field(ge=0, le=MAX_DEVICES, description="machines that every plan has, 0 or more")
    ]
    at_most: Annotated[int, Field(ge=1, le=MAX_DEVICES, description="maximum number of machines")]
    owned: Annotated[
        int,
        Field(
            ge=1,
            le=MAX_DEVICES,
            description="number of machines that you have, the most of a plan; they cost nothing "
            "without price, and a single one is called name",
        ),
    ]


@with_config(STRICT)
class OffersToml(TypedDict, total=False):
    """Types of machines that can be bought or are owned, their prices, and their links."""

    per_core: Annotated[Amount, doc("price per hour of a core of the default speed")]
    per_gb: Annotated[Amount, doc("price per hour of 1 GB of memory")]
    overhead: PerTuple
    overhead_per_byte: PerByte
    slot_sharing: Annotated[
        bool,
        doc(
            "whether a slot may hold a subtask of each operator, as in Flink; by default it holds "
            "one subtask"
        ),
    ]
    links: Annotated[
        ListOf[LinkToml], doc("from each machine of an offer to each of another, in one direction")
    ]
    bandwidth: Annotated[Quantity, doc("of every link not listed; unlimited by default")]
    latency: Annotated[Quantity, doc("of every link not listed: seconds, or '1 ms'")]
    offers: Required[
        Annotated[list[OfferToml], FailFast(), Field(min_length=1, description="one or more types")]
    ]


@with_config(STRICT)
class ConstraintsToml(TypedDict, total=False):
    """Constraints on the devices of operators."""

    pin: Annotated[TableOf[str], doc("operator → device")]
    colocate: Annotated[ListOf[ListOf[str]], doc("groups of operators that must share a device")]
    exlocate: Annotated[
        ListOf[ListOf[str]], doc("groups of operators no two of which may share one")
    ]
    allowed: Annotated[
        TableOf[ListOf[str]],
        doc("operator → devices; `tag:gpu` stands for those with a tag, `big` for big0, big1, …"),
    ]


@with_config(STRICT)
class WindowJson(TypedDict, total=False):
    """A window: every ``advance`` s emits min(limit, base + factor · count) tuples."""

    size: Required[Annotated[Quantity, doc("length in seconds, or '5 min'")]]
    advance: Required[Annotated[Quantity, doc("seconds between two evaluations, or '10 s'")]]
    base: Annotated[Amount, doc("tuples per evaluation, 1 by default")]
    factor: Annotated[Amount, doc("additional tuples per tuple in the window, 0 by default")]
    limit: Annotated[Amount, doc("maximum number of tuples per evaluation")]


@with_config(STRICT)
class OperatorJson(TypedDict, total=False):
    """An operator; one without incoming streams is a source and needs a rate."""

    name: Required[Annotated[str, doc("unlike those of the others")]]
    ipt: Annotated[Amount, doc("instructions per input tuple")]
    payload: Annotated[Quantity, doc("bytes per output tuple, or a string such as '12.5 kB'")]
    rate: Annotated[Quantity, doc("tuples/s that a source generates, or '10 k/s'")]
    constant: Annotated[
        Amount,
        doc(
            "MIPS that it uses whatever its rate, all subtasks together, as timers and "
            "committers do"
        ),
    ]
    max_rate: Annotated[
        Quantity,
        doc(
            "tuples/s that one subtask reads (a source: emits) at most, whatever CPU it has, or "
            "'66 k/s'; 0, the default, for no limit"
        ),
    ]
    cores: Annotated[
        float,
        Field(
            ge=1,
            le=MAX_VALUE,
            description="cores that one subtask uses at most; 1, the default, for a single thread",
        ),
    ]
    parallelism: Annotated[int, Field(ge=1, le=MAX_SUBTASKS, description="number of subtasks")]
    max_parallelism: Annotated[
        int,
        Field(
            ge=0,
            le=MAX_KEY_GROUPS,
            description="number of key groups, or splits of a source, that are divided among the "
            "subtasks; 0, the default, for tuples that can be divided at will",
        ),
    ]
    slot_sharing_group: Annotated[
        str, doc("operators of one group may share slots, in plans; as in Flink")
    ]
    kind: Annotated[
        str, doc("what it computes, such as a convolution; some learned placers read it")
    ]
    requires: Annotated[ListOf[str], doc("tags a device must have")]
    memory: Annotated[Quantity, doc("bytes, or '2 GB'")]
    window: Annotated[WindowJson, doc("makes it emit per window, not per tuple")]
    fires: Annotated[Fires, doc("once per tuple, or per set of one tuple from every input")]
    about: Annotated[str, doc("description for readers")]


StreamJson = TypedDict(
    "StreamJson",
    {
        "from": Required[Annotated[str, doc("operator that sends")]],
        "to": Required[Annotated[str, doc("operator that receives")]],
        "selectivity": Annotated[
            Amount,
            doc(
                "tuples per input tuple of the sender, or per tuple that its window emits; 1 by "
                "default"
            ),
        ],
        "payload": Annotated[Quantity, doc("bytes per tuple, if not the payload of the sender")],
        "partitioning": Annotated[
            Literal["", "forward", "rebalance", "rescale", "hash", "chained"],
            doc(
                "how tuples reach the subtasks of the receiver; by default hash if it has key "
                "groups, else forward between equal numbers of subtasks, rebalance otherwise"
            ),
        ],
        "input": Annotated[str, doc("input of an operator that fires all; one name, one input")],
        "ipt": Annotated[
            Amount,
            doc(
                "instructions per tuple to hand it to another thread, half at each end; none where "
                "the stream is chained"
            ),
        ],
    },
    total=False,
)
with_config(STRICT)(StreamJson)


@with_config(STRICT)
class GraphJson(TypedDict, total=False):
    """A stream graph: operators and the streams between them, without cycles."""

    name: Annotated[str, doc("that of the file by default")]
    attributes: Annotated[
        TableOf[str | int | Finite | bool],
        doc("facts about the graph: its split, or what was measured and how"),
    ]
    fires: Annotated[Fires, doc("default for operators without a value; 'all' makes a task graph")]
    operators: Required[Annotated[ListOf[OperatorJson], doc("in any order")]]
    streams: Annotated[ListOf[StreamJson], doc("between the operators")]


@with_config(STRICT)
class ElementJson(TypedDict, total=False):
    """A processing element: the operators on one device."""

    pe: Required[Annotated[int, Field(ge=0, description="its number")]]
    device: Required[Annotated[str, doc("where it runs")]]
    requires: Annotated[ListOf[str], doc("tags its operators require")]
    operators: Required[Annotated[ListOf[str], doc("their names")]]


@with_config(STRICT)
class CarriesJson(TypedDict):
    """A predicted rate with its interval."""

    low: Annotated[Amount, doc("lower end of the interval, tuples/s")]
    value: Annotated[Amount, doc("prediction")]
    high: Annotated[Amount, doc("upper end")]
    confidence: Annotated[Amount, doc("probability with which the rate is in the interval")]


@with_config(STRICT)
class PlacementJson(TypedDict, total=False):
    """A placement: the device of every operator.

    Commands read `assignment`, `priority` and `queue`. `simulate` also reads `rate` and
    `objective`, and says if they change its result; commands that start jobs read `parallelism`,
    and after a move `carries`. The other fields are for people. The output of `place --json` is a
    placement as well; all of these fields except `carries` are read from it.
    """

    about: Annotated[ListOf[str], doc("notes for readers")]

    graph: Annotated[str, doc("name of the graph it is for")]
    placer: Annotated[str, doc("placer that made it")]
    rate: Annotated[Amount, doc("tuples/s of the sources that it was placed for")]
    objective: Annotated[str, doc("objective that it was evaluated by")]
    value: Annotated[Finite, doc("value that it reaches by that objective")]
    relative_throughput: Annotated[Amount, doc("relative throughput that it reaches, 0 to 1")]
    carries: Annotated[CarriesJson, doc("tuples/s that it carries, if the graph was measured")]
    bound: Annotated[Finite, doc("bound that no placement exceeds")]
    answers: Annotated[str, doc("digest of the graph and the options, in data sets")]
    priority: Annotated[
        dict[str, Finite],
        doc(
            "operator → priority: on each device, the operator with the highest priority runs first"
        ),
    ]
    queue: Annotated[
        Discipline,
        doc(
            "'priority', the default: of the ready operators, the highest priority runs first; "
            "'order': a device waits for the next in line even if another is ready"
        ),
    ]
    pes: Annotated[ListOf[ElementJson], doc("operators by device")]
    colocate: Annotated[ListOf[ListOf[str]], doc("must share a device")]
    exlocate: Annotated[ListOf[ListOf[str]], doc("must not share one")]
    parallelism: Annotated[
        dict[str, Annotated[int, Field(ge=1, le=MAX_SUBTASKS)]],
        doc("number of subtasks of operators that have several"),
    ]
    max_parallelism: Annotated[
        dict[str, Annotated[int, Field(ge=1, le=MAX_KEY_GROUPS)]],
        doc("key groups by which tuples are dealt to the subtasks of operators"),
    ]
    assignment: Required[Annotated[TableOf[str], doc("operator name → device name")]]


@with_config(STRICT)
class MovingJson(TypedDict, total=False):
    """Costs of moving operators, a row for each."""

    state: Annotated[
        ListOf[Amount],
        doc("bytes that each operator takes along when it moves; by default its memory"),
    ]
    startup: Annotated[
        ListOf[ListOf[Amount]], doc("seconds to start, operators × devices; by default 0")
    ]


@with_config(STRICT)
class ProblemJson(TypedDict, total=False):
    """A problem: a graph, and its cluster, constraints and costs if they are known."""

    graph: Required[Annotated[GraphJson, doc("the fields of a graph file")]]
    cluster: Annotated[ClusterToml, doc("the keys of a cluster file")]
    constraints: Annotated[ConstraintsToml, doc("the keys of a constraints file")]
    seconds: Annotated[
        ListOf[ListOf[Amount]],
        doc("core seconds per tuple, operators × devices, where not ipt / MIPS"),
    ]
    moving: Annotated[MovingJson, doc("what it costs to move operators")]


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


def _columns(document: type, noun: type) -> dict[str, FieldRule]:
    """Rules of the fields of a document that are plain columns, in the order of files."""
    rules = dict(rules_of(noun))
    rules.pop("window", None)
    return {key: rules[key] for key in document.__annotations__ if key in rules}


OPERATOR, STREAM = _columns(OperatorJson, Operators), _columns(StreamJson, Streams)
