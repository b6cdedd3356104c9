"""The document of a report page: comparisons and plans."""

from typing import Any, Literal

from typing_extensions import TypedDict


class ObjectivePart(TypedDict):
    """The objective of placements."""

    name: str
    quantity: str
    sense: Literal["max", "min"]
    unit: str


class ComparedPart(TypedDict):
    """Results of a comparison by one objective at one rate (null: the graphs' own)."""

    objective: ObjectivePart
    rate: float | None
    placers: list[str]
    # A row for each placer with ``placer`` and the numbers of ``streamplace compare --json``.
    rows: list[dict[str, Any]]
    # Values of each placer [P] on each graph [G]; null without a placement.
    values: list[list[float | None]]
    milliseconds: list[list[float]]  # time of each placer [P] on each graph [G]
    optimum: list[float | None]  # [G] proven optimum; null if unknown


class ComparisonPart(TypedDict):
    """A comparison of placers."""

    graphs: list[str]  # [G] names of the graphs
    problem: list[int | None]  # [G] number of the graph in ``problems``; null if the page omits it
    reference: str
    aliases: dict[str, str]  # alias → placer, for the aliases in the tables
    results: list[ComparedPart]
    failures: dict[str, str]


class MachinesPart(TypedDict):
    """Machines of one type in a plan; ``price`` is per hour, null if unknown."""

    name: str
    number: int
    price: float | None
    contents: str


class CurvePart(TypedDict):
    """A plan of a curve; ``at`` is its rate."""

    at: float
    cost: float
    bound: float
    gap: float
    machines: dict[str, int]


class PlanPart(TypedDict):
    """A plan, which is also the first of ``problems``; of a curve, the one of the highest rate."""

    rate: float
    cost: float
    bound: float
    gap: float
    cheapest: bool  # whether no plan costs less
    priced: bool
    machines: list[MachinesPart]
    parallelism: dict[str, int]
    free: dict[str, float]  # free share of each resource
    carries: float | None  # largest rate with this placement; null if no resource is used
    curve: list[CurvePart]  # plans for a range of rates, ascending; empty for a single plan
