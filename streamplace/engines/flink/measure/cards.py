"""Speed of the network cards of TaskManagers: given, else measured on this machine, else assumed.

The link speed of a card is in ``/sys/class/net/CARD/speed``. It applies to a TaskManager on this
machine that either shares this network or has a network and a ``/sys`` of its own. Virtual
interfaces report a meaningless number, so only cards with hardware and bonds of them count.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from streamplace.errors import SettingError
from streamplace.model.messages import listed, quoted
from streamplace.model.units import bandwidth_bps

ALL = ""
"""Key that stands for every TaskManager in the given speeds."""
GIVEN, MEASURED, ASSUMED = "given", "link speed", "assumed"


class Card(NamedTuple):
    """Speed of a network card in either direction, such as ``"1000 Mbps"``, and its origin."""

    speed: str
    source: str

    @property
    def is_assumed(self) -> bool:
        """Whether the speed is neither given nor measured."""
        return self.source == ASSUMED


def parse_cards(texts: tuple[str, ...]) -> dict[str, str]:
    """TaskManager → speed of its card, from texts such as ``1 Gbps`` and ``dev-0=100 Mbps``.

    >>> parse_cards(("1 Gbps", "dev-0=100 Mbps"))
    {'': '1 Gbps', 'dev-0': '100 Mbps'}
    """
    given: dict[str, str] = {}
    for text in texts:
        name, _, speed = text.rpartition("=")
        if name in given:
            what = f"the card of {quoted(name)}" if name else "the card of all TaskManagers"
            raise SettingError(f"{what} is given twice; give it once")
        if not bandwidth_bps(speed) > 0:
            raise SettingError(f"the card is {quoted(text)}; the speed must be above 0")
        given[name] = speed.strip()
    return given


def cards_of(
    managers: list[str], given: Mapping[str, str], processes: Mapping[str, int], usual: str
) -> dict[str, Card]:
    """TaskManager → its card.

    ``given``: speeds of some TaskManagers, or of all by the name "".
    ``processes``: TaskManager → process, for those on this machine.
    ``usual``: speed that is assumed if nothing is known.
    """
    if unknown := [name for name in given if name != ALL and name not in managers]:
        raise SettingError(
            f"nic names {quoted(unknown[0])}, but the TaskManagers are {listed(managers)}"
        )
    return {name: _card(name, given, processes.get(name), usual) for name in managers}


def _card(name: str, given: Mapping[str, str], process: int | None, usual: str) -> Card:
    speed = given.get(name, given.get(ALL))
    if speed is not None:
        return Card(speed, GIVEN)
    megabits = None if process is None else link_speed(process)
    return Card(usual, ASSUMED) if megabits is None else Card(f"{megabits} Mbps", MEASURED)


def link_speed(process: int, processes: Path = Path("/proc")) -> int | None:
    """Mbps of the card through which a process reaches other machines; None if unknown.

    ``processes``: folder of the processes.
    """
    with suppress(OSError, ValueError):  # the process has ended, or belongs to another user
        own, other = processes / "self", processes / str(process)
        if not _is_shared("net", own, other) and _is_shared("mnt", own, other):
            return None  # its /sys would be that of another network
        route = _default_route((other / "net" / "route").read_text())
        folder = other / "root" / "sys" / "class" / "net" / route
        if route and ((folder / "device").exists() or (folder / "bonding").exists()):
            speed = int((folder / "speed").read_text())
            return speed if speed > 0 else None
    return None


def _is_shared(kind: str, one: Path, other: Path) -> bool:
    """Whether two processes share a namespace of this kind."""
    return (one / "ns" / kind).readlink() == (other / "ns" / kind).readlink()


def _default_route(table: str) -> str:
    """Interface of the default route in ``/proc/PID/net/route``; empty if there is none."""
    rows = [line.split() for line in table.splitlines()[1:]]
    return next((row[0] for row in rows if row[1] == row[7] == "00000000"), "")
