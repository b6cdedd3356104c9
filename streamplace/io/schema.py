"""Native file formats as typed dictionaries: validated in one pass, published as JSON Schema."""

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from streamplace.errors import SettingError
from streamplace.io.fields import STRICT, Amount, Finite, ListOf, Quantity, TableOf, doc
from streamplace.io.toml_schema import ClusterToml, ConstraintsToml, OffersToml
from streamplace.model.messages import quoted, suggestion
from streamplace.model.operators import MOST_KEY_GROUPS, MOST_SUBTASKS
from streamplace.model.placement import Discipline


@with_config(STRICT)
class WindowJson(TypedDict):
    """A window: every ``advance`` s emits min(limit, base + factor · count) tuples."""

    size: Annotated[Quantity, doc("length in seconds, or '5 min'")]
    advance: Annotated[Quantity, doc("seconds between two evaluations, or '10 s'")]
    base: NotRequired[Annotated[Amount, doc("tuples per evaluation, 1 by default")]]
    factor: NotRequired[
        Annotated[Amount, doc("additional tuples per tuple in the window, 0 by default")]
    ]
    limit: NotRequired[Annotated[Amount, doc("maximum number of tuples per evaluation")]]


@with_config(STRICT)
class OperatorJson(TypedDict):
    """An operator; one without incoming streams is a source and needs a rate."""

    name: Annotated[str, doc("unlike those of the others")]
    ipt: NotRequired[Annotated[Amount, doc("instructions per input tuple")]]
    payload: NotRequired[
        Annotated[Quantity, doc("bytes per output tuple, or a string such as '12.5 kB'")]
    ]
    rate: NotRequired[Annotated[Quantity, doc("tuples/s that a source generates, or '10 k/s'")]]
    constant: NotRequired[
        Annotated[
            Amount,
            doc(
                "MIPS that it uses whatever its rate, all subtasks together, as timers and "
                "committers do"
            ),
        ]
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
    max_rate: NotRequired[
        Annotated[
            Quantity,
            doc(
                "tuples/s that one subtask reads (a source: emits) at most, whatever CPU it "
                "has, or '66 k/s'; 0, the default, for no limit"
            ),
        ]
    ]
    slot_sharing_group: NotRequired[
        Annotated[str, doc("operators of one group may share slots, in plans; as in Flink")]
    ]
    kind: NotRequired[
        Annotated[str, doc("what it computes, such as a convolution; some learned placers read it")]
    ]
    requires: NotRequired[Annotated[ListOf[str], doc("tags a device must have")]]
    memory: NotRequired[Annotated[Quantity, doc("bytes, or '2 GB'")]]
    window: NotRequired[Annotated[WindowJson, doc("makes it emit per window, not per tuple")]]
    fires: NotRequired[
        Annotated[
            Literal["each", "all"], doc("once per tuple, or per set of one tuple from every input")
        ]
    ]
    about: NotRequired[Annotated[str, doc("description for readers")]]


StreamJson = TypedDict(
    "StreamJson",
    {
        "from": Annotated[str, doc("operator that sends")],
        "to": Annotated[str, doc("operator that receives")],
        "selectivity": NotRequired[
            Annotated[
                Amount,
                doc(
                    "tuples per input tuple of the sender, or per tuple that its window emits; 1 "
                    "by default"
                ),
            ]
        ],
        "payload": NotRequired[
            Annotated[Quantity, doc("bytes per tuple, if not the payload of the sender")]
        ],
        "partitioning": NotRequired[
            Annotated[
                Literal["", "forward", "rebalance", "rescale", "hash", "chained"],
                doc(
                    "how tuples reach the subtasks of the receiver; by default hash if it has key "
                    "groups, else forward between equal numbers of subtasks, rebalance otherwise"
                ),
            ]
        ],
        "ipt": NotRequired[
            Annotated[
                Amount,
                doc(
                    "instructions per tuple to hand it to another thread, half at each end; none "
                    "where the stream is chained"
                ),
            ]
        ],
        "input": NotRequired[
            Annotated[str, doc("input of an operator that fires all; one name, one input")]
        ],
    },
)
with_config(STRICT)(StreamJson)


@with_config(STRICT)
class GraphJson(TypedDict):
    """A stream graph: operators and the streams between them, without cycles."""

    name: NotRequired[Annotated[str, doc("that of the file by default")]]
    attributes: NotRequired[
        Annotated[
            TableOf[str | int | Finite | bool],
            doc("facts about the graph: its split, or what was measured and how"),
        ]
    ]
    fires: NotRequired[
        Annotated[
            Literal["each", "all"],
            doc("default for operators without a value; 'all' makes a task graph"),
        ]
    ]
    operators: Annotated[ListOf[OperatorJson], doc("in any order")]
    streams: NotRequired[Annotated[ListOf[StreamJson], doc("between the operators")]]


@with_config(STRICT)
class ElementJson(TypedDict):
    """A processing element: the operators on one device."""

    pe: Annotated[int, Field(ge=0, description="its number")]
    device: Annotated[str, doc("where it runs")]
    requires: NotRequired[Annotated[ListOf[str], doc("tags its operators require")]]
    operators: Annotated[ListOf[str], doc("their names")]


@with_config(STRICT)
class CarriesJson(TypedDict):
    """A predicted rate with its interval."""

    low: Annotated[Amount, doc("lower end of the interval, tuples/s")]
    value: Annotated[Amount, doc("prediction")]
    high: Annotated[Amount, doc("upper end")]
    confidence: Annotated[Amount, doc("probability with which the rate is in the interval")]


@with_config(STRICT)
class PlacementJson(TypedDict):
    """A placement: the device of every operator.

    `assignment`, `priority` and `queue` are read; where jobs are started, `parallelism` as well,
    and after a move what the placement `carries`. The other fields tell more. The output of
    `place --json` is taken, too, of which the same fields except `carries` are read.
    """

    about: NotRequired[Annotated[ListOf[str], doc("notes for readers")]]

    graph: NotRequired[Annotated[str, doc("name of the graph it is for")]]
    placer: NotRequired[Annotated[str, doc("placer that made it")]]
    objective: NotRequired[Annotated[str, doc("objective that it was evaluated by")]]
    value: NotRequired[Annotated[Finite, doc("value that it reaches by that objective")]]
    relative_throughput: NotRequired[
        Annotated[Amount, doc("relative throughput that it reaches, 0 to 1")]
    ]
    carries: NotRequired[
        Annotated[CarriesJson, doc("tuples/s that it carries, if the graph was measured")]
    ]
    bound: NotRequired[Annotated[Finite, doc("bound that no placement exceeds")]]
    answers: NotRequired[Annotated[str, doc("digest of the graph and the options, in data sets")]]
    priority: NotRequired[
        Annotated[
            dict[str, Finite],
            doc(
                "operator → priority: on each device, the operator with the highest priority runs "
                "first"
            ),
        ]
    ]
    queue: NotRequired[
        Annotated[
            Discipline,
            doc(
                "'priority', as without it: of the ready, the highest runs first; 'order': a "
                "device waits for the next in line even if another is ready"
            ),
        ]
    ]
    pes: NotRequired[Annotated[ListOf[ElementJson], doc("operators by device")]]
    colocate: NotRequired[Annotated[ListOf[ListOf[str]], doc("must share a device")]]
    exlocate: NotRequired[Annotated[ListOf[ListOf[str]], doc("must not share one")]]
    parallelism: NotRequired[
        Annotated[
            dict[str, Annotated[int, Field(ge=1, le=MOST_SUBTASKS)]],
            doc("number of subtasks of operators that have several"),
        ]
    ]
    max_parallelism: NotRequired[
        Annotated[
            dict[str, Annotated[int, Field(ge=1, le=MOST_KEY_GROUPS)]],
            doc("key groups by which tuples are dealt to the subtasks of operators"),
        ]
    ]
    assignment: Annotated[TableOf[str], doc("operator name → device name")]


@with_config(STRICT)
class MovingJson(TypedDict):
    """Costs of moving operators, a row for each."""

    state: NotRequired[
        Annotated[
            ListOf[Amount],
            doc("bytes that each operator takes along when it moves; by default its memory"),
        ]
    ]
    startup: NotRequired[
        Annotated[
            ListOf[ListOf[Amount]], doc("seconds to start, operators × devices; by default 0")
        ]
    ]


@with_config(STRICT)
class ProblemJson(TypedDict):
    """A problem: a graph, and what is known of where it is placed."""

    graph: Annotated[GraphJson, doc("the fields of a graph file")]
    cluster: NotRequired[Annotated[ClusterToml, doc("the keys of a cluster file")]]
    constraints: NotRequired[Annotated[ConstraintsToml, doc("the keys of a constraints file")]]
    seconds: NotRequired[
        Annotated[
            ListOf[ListOf[Amount]],
            doc("core seconds per tuple, operators × devices, where not ipt / MIPS"),
        ]
    ]
    moving: NotRequired[Annotated[MovingJson, doc("what it costs to move operators")]]


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
