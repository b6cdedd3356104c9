"""Rules of a pass: queues of ready operators on devices, and contention in the network."""

from dataclasses import dataclass
from math import isfinite
from typing import Final, Literal, get_args

Queue = Literal["fifo", "rows", "priority", "depth", "breadth", "order"]
Network = Literal["free", "sender", "link", "port", "shared"]


def _require_one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} is {value!r}; choose one of {', '.join(choices)}")


def _require_seconds(name: str, value: float) -> None:
    if not (isfinite(value) and value >= 0):
        raise ValueError(f"{name} is {value}; give a finite number of seconds of at least 0")


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules by which devices choose operators and transfers share the network.

    Parameters
    ----------
    queue : {"fifo", "rows", "priority", "depth", "breadth", "order"}
        Ready operator that a free core of its device runs next.

        - ``fifo``: the first to become ready. Events of the same instant happen in the order in
          which they were created, as in SimPy.
        - ``rows``: the same, but at the same instant the operator whose last input has the producer
          with the lowest index, then the lower index.
        - ``priority``: the operator with the highest priority, then the lower index.
        - ``depth``, ``breadth``: the operator furthest from (nearest to) the sources, counted in
          streams, then the lower index.
        - ``order``: the next in line. A device runs its operators by falling priority, equals in
          topological order, and waits for the next in line even if another one is ready.
    network : {"free", "sender", "link", "port", "shared"}
        Transfers between devices that may be in progress at the same time.

        - ``free``: all of them.
        - ``sender``: one out of every device; an output is sent once, to all its receivers.
        - ``link``: one on every ordered pair of devices.
        - ``port``: one out of every device and one into every device.
        - ``shared``: all of them; they share links and network cards fairly.

        In ``link``, ``port`` and ``shared`` an output is sent once to every device that needs it.
    pause : float
        Seconds for which a core stays occupied after an operator with work above 0.
    spacing : float
        Seconds for which ``sender``, ``link`` and ``port`` keep their channel after a transfer.

    Examples
    --------
    >>> Rules(network="link")
    Rules(queue='fifo', network='link', pause=0.0, spacing=0.0)
    >>> Rules(queue="lifo")
    Traceback (most recent call last):
    ...
    ValueError: queue is 'lifo'; choose one of fifo, rows, priority, depth, breadth, order
    """

    queue: Queue = "fifo"
    network: Network = "free"
    pause: float = 0.0
    spacing: float = 0.0

    def __post_init__(self) -> None:
        """Reject unknown rules."""
        _require_one_of("queue", self.queue, get_args(Queue))
        _require_one_of("network", self.network, get_args(Network))
        _require_seconds("pause", self.pause)
        _require_seconds("spacing", self.spacing)


#: GiPH (Hu et al., 2023): single-core devices serve in order of arrival, links have no contention.
GIPH: Final = Rules()
#: Placeto (Addanki et al., 2019): one outgoing bus per device, 5.7 µs after every operator and
#: 25 µs after every transfer, which the makespan includes.
PLACETO: Final = Rules(queue="rows", network="sender", pause=5.7e-6, spacing=25e-6)
#: Doppler (Yao et al., 2025), Algorithm 1: one transfer at a time on every ordered pair.
DOPPLER: Final = Rules(network="link")

PRESETS: Final[dict[str, Rules]] = {"giph": GIPH, "placeto": PLACETO, "doppler": DOPPLER}
