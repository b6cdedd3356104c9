"""How much pilot's policies are asked."""

from typing import NamedTuple


class Plan(NamedTuple):
    """Walks, looks in each, and samples besides; None for what suits the budget."""

    walks: int
    looks: int
    samples: int | None
