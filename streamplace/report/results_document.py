"""What the document of a report page says of comparisons, plans, trainings and moves."""

from typing import Any, Literal

from typing_extensions import TypedDict


class ObjectivePart(TypedDict):
    """What placements are judged by."""

    name: str
    quantity: str
    sense: Literal["max", "min"]
    unit: str


class ComparedPart(TypedDict):
    """Results of a comparison by one objective at one rate (null: the graphs' own).

    Attributes
    ----------
    rows
        A row for each placer with ``placer`` and the numbers of ``streamplace compare --json``.
    values
        Values of each placer [P] on each graph [G]; null where it placed nothing.
    milliseconds
        Time of each placer [P] on each graph [G].
    optimum
        [G] proven optimum; null where none is known.
    """

    objective: ObjectivePart
    rate: float | None
    placers: list[str]
    rows: list[dict[str, Any]]
    values: list[list[float | None]]
    milliseconds: list[list[float]]
    optimum: list[float | None]


class ComparisonPart(TypedDict):
    """A comparison of placers.

    Attributes
    ----------
    graphs
        [G] names of the graphs.
    problem
        [G] number of the graph in ``problems``; null where the page does not hold it.
    aliases
        Placers by the aliases that the tables show.
    """

    graphs: list[str]
    problem: list[int | None]
    reference: str
    aliases: dict[str, str]
    results: list[ComparedPart]
    failures: dict[str, str]


class MachinesPart(TypedDict):
    """Machines of one type in a plan; ``price`` is per hour, null where they have none."""

    name: str
    number: int
    price: float | None
    contents: str


class PlanStepPart(TypedDict):
    """What one machine less or more carries."""

    machines: dict[str, int]
    cost: float
    rate: float


class CurvePart(TypedDict):
    """A plan of a curve; ``at`` is its rate, or its number of protected operators."""

    at: float
    cost: float
    bound: float
    gap: float
    machines: dict[str, int]


class PlanPart(TypedDict):
    """A plan, which is also the first of ``problems``; of several, the one for the highest value.

    Attributes
    ----------
    cheapest
        Whether no plan costs less.
    free
        Share of each resource that is free.
    carries
        Largest rate with this placement; null where no resource is used.
    along
        What the plans of ``curve`` differ by: "rate" (the frontier), or "robust", the number of
        operators on each machine that may cost more.
    curve
        All plans, ascending; empty for a single one.
    """

    rate: float
    cost: float
    bound: float
    gap: float
    cheapest: bool
    priced: bool
    machines: list[MachinesPart]
    parallelism: dict[str, int]
    free: dict[str, float]
    carries: float | None
    cheaper: PlanStepPart | None
    dearer: PlanStepPart | None
    along: Literal["rate", "robust"]
    curve: list[CurvePart]


class TrainingPart(TypedDict):
    """A training: curves by epoch, each a column by its name, null where nothing was measured."""

    model: str
    objective: str
    epochs: list[int]
    curves: dict[str, list[float | None]]
    before: float | None
    best: int


class MovePart(TypedDict):
    """Subtasks of one operator that move: how many leave which devices, and reach which."""

    operator: str
    source: dict[str, int]
    target: dict[str, int]
