"""Clusters, offers and constraints as typed dictionaries: the files in TOML."""

from typing import Annotated, NotRequired

from pydantic import FailFast, Field, with_config
from typing_extensions import TypedDict

from streamplace.io.fields import STRICT, Amount, ListOf, Quantity, TableOf, doc
from streamplace.model.cluster import MOST_DEVICES
from streamplace.model.devices import MOST_CORES

Speed = Annotated[Quantity, doc("speed of a core: a number in MIPS, or '2500 MIPS'")]
Cores = Annotated[int, Field(ge=1, le=MOST_CORES, description="number of cores, 1 by default")]
Tags = Annotated[ListOf[str], doc("what it offers to operators that require it, such as a GPU")]
Reserved = Annotated[
    Quantity, doc("MIPS of all its cores together that other processes take, such as Java")
]
Memory = Annotated[Quantity, doc("bytes, or '16 GB'")]
Egress = Annotated[Quantity, doc("maximum that its network card sends: bit/s, or '10 Gbps'")]
Ingress = Annotated[Quantity, doc("maximum that its network card receives")]
PerTuple = Annotated[Quantity, doc("core seconds per remote tuple, at either end")]
PerByte = Annotated[Quantity, doc("core seconds per remote byte, at either end")]


@with_config(STRICT)
class DeviceToml(TypedDict):
    """One device, or ``count`` equal ones: name0, name1 and so on."""

    name: Annotated[str, doc("its own, or the beginning of the names of several equal ones")]
    count: NotRequired[
        Annotated[int, Field(ge=1, le=MOST_DEVICES, description="number of equal devices")]
    ]
    mips: NotRequired[Speed]
    cores: NotRequired[Cores]
    reserved: NotRequired[Reserved]
    tags: NotRequired[Tags]
    memory: NotRequired[Memory]
    egress: NotRequired[Egress]
    ingress: NotRequired[Ingress]
    watts: NotRequired[Annotated[Amount, doc("power of a busy core in excess of an idle one")]]


LinkToml = TypedDict(
    "LinkToml",
    {
        "from": Annotated[str, doc("device that sends")],
        "to": Annotated[str, doc("device that receives")],
        "bandwidth": NotRequired[Annotated[Quantity, doc("'100 Mbps', or at least 100000 bit/s")]],
        "latency": NotRequired[Annotated[Quantity, doc("seconds, or '20 ms'")]],
    },
)
with_config(STRICT)(LinkToml)


@with_config(STRICT)
class ClusterToml(TypedDict):
    """A cluster: devices, and links where they differ from the default."""

    devices: Annotated[ListOf[DeviceToml], doc("all devices")]
    links: NotRequired[Annotated[ListOf[LinkToml], doc("in one direction each")]]
    bandwidth: NotRequired[
        Annotated[
            Quantity, doc("of every link not listed: bit/s (100000 at least), or '1000 Mbps'")
        ]
    ]
    latency: NotRequired[Annotated[Quantity, doc("of every link not listed: seconds, or '1 ms'")]]
    overhead: NotRequired[PerTuple]
    overhead_per_byte: NotRequired[PerByte]
    gap: NotRequired[
        Annotated[Quantity, doc("link seconds per remote tuple, in addition to its bytes")]
    ]
    framing: NotRequired[
        Annotated[Amount, doc("bytes on the wire per byte of payload, in addition to it")]
    ]
    headroom: NotRequired[
        Annotated[
            float,
            Field(
                ge=0, lt=1, description="share of every CPU, network card and link that stays free"
            ),
        ]
    ]
    joules_per_byte: NotRequired[Annotated[Amount, doc("energy of sending a byte over a link")]]


@with_config(STRICT)
class OfferToml(TypedDict):
    """A type of machine that can be bought."""

    name: Annotated[str, doc("the machines of a plan are called name-0, name-1 and so on")]
    price: Annotated[float, doc("per hour, in any currency")]
    mips: NotRequired[Speed]
    cores: NotRequired[Cores]
    memory: NotRequired[Memory]
    egress: NotRequired[Egress]
    ingress: NotRequired[Ingress]
    slots: NotRequired[Annotated[int, Field(ge=1, description="number of slots of a machine")]]
    tags: NotRequired[Tags]
    reserved: NotRequired[Reserved]
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

    overhead: NotRequired[PerTuple]
    overhead_per_byte: NotRequired[PerByte]
    slot_sharing: NotRequired[
        Annotated[
            bool,
            doc(
                "whether a slot may hold a subtask of each operator, as in Flink; by default it "
                "holds one subtask"
            ),
        ]
    ]
    offers: Annotated[
        list[OfferToml], FailFast(), Field(min_length=1, description="one or more types")
    ]


@with_config(STRICT)
class ConstraintsToml(TypedDict):
    """Constraints on the devices of operators."""

    pin: NotRequired[Annotated[TableOf[str], doc("operator → device")]]
    colocate: NotRequired[
        Annotated[ListOf[ListOf[str]], doc("groups of operators that must share a device")]
    ]
    exlocate: NotRequired[
        Annotated[ListOf[ListOf[str]], doc("groups of operators no two of which may share one")]
    ]
    allowed: NotRequired[Annotated[TableOf[ListOf[str]], doc("operator → devices")]]
