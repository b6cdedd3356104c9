"""Plan problems: a graph at a rate, the available machines, and the settings of the plan."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from streamplace.errors import ProblemError, SettingError
from streamplace.model.cluster import Cluster
from streamplace.model.constraints import TAG, Constraints
from streamplace.model.defaults import PLAN_SECONDS
from streamplace.model.devices import SLACK
from streamplace.model.graph import MAX_INPUT_RATE, StreamGraph
from streamplace.model.message_text import quoted
from streamplace.model.operators import MAX_SUBTASKS
from streamplace.model.prediction_intervals import PredictionErrors
from streamplace.model.units import MAX_VALUE
from streamplace.placers.registry import Budget
from streamplace.planning.cuts import MARGIN
from streamplace.planning.demand import Demand, demand_of, subtask_speeds
from streamplace.planning.offers import Catalogue, Offer, offer_of, without_places
from streamplace.planning.packing import allowed
from streamplace.planning.parallelism import least_parallelism
from streamplace.planning.rules import PlanRules, rules_on_cluster, rules_on_offers

PLAN_BUDGET = Budget(PLAN_SECONDS)
MAX_FREE = 1 - 1e-12
"""Largest free share at which rounding does not make the rest 0."""
FREE = "the share that stays free"
UNKNOWN = "what the profile does not know"
VARIED = "CPU per tuple that varied in the profile"
"""Purposes of the reserve: headroom, errors of predictions, and more of it for varying CPU."""


@dataclass(frozen=True, slots=True)
class PlannerSettings:
    """Settings of a plan, besides the graph and the machines."""

    # Free share h of each resource whose use is proportional to the rate: the plan is for
    # 1 / (1 − h) times the rate, with which memory, slots and constant loads do not grow. The
    # headroom of the result includes the reserve for errors of predictions.
    headroom: float = 0.0
    # Whether every operator keeps the parallelism of the graph, or the names of operators that do.
    keep_parallelism: bool | frozenset[str] = False
    seed: int = 0  # the same seed gives the same plan, unless the budget ends the search
    budget: Budget = PLAN_BUDGET  # time that the search may take, or a number of moves
    # Errors of predictions for the graph; the plan then carries the rate even at the lower end of
    # its prediction. None plans with the prediction itself.
    errors: PredictionErrors | None = None
    constraints: Constraints | None = None  # on the machines of operators, if any
    # Share of the rate, with the headroom, that the machines carry after the loss of any one, if
    # only its subtasks move.
    survives: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.headroom < 1:
            rule = "it must be at least 0 and less than 1"
            raise SettingError(f"headroom is {self.headroom:g}; {rule}")


USUAL_SETTINGS = PlannerSettings()


@dataclass(frozen=True, eq=False)
class PlanProblem:
    """A graph at a rate, and the machines available to a plan."""

    graph: StreamGraph  # the graph at its rate
    settings: PlannerSettings  # headroom and budget of the plan
    # Types of machines. The machines of a cluster are offers with a price of 1.
    catalogue: Catalogue
    # Free share, for the headroom and the errors of predictions together.
    reserved: float
    cluster: Cluster | None = None  # the cluster to plan for; None if machines are bought
    members: tuple[tuple[int, ...], ...] = ()  # indices of the cluster's devices of each type
    # Multiples of the rate that the plan is made for, by purpose.
    reserves: Mapping[str, float] = field(default_factory=dict)
    rules: PlanRules | None = None  # None if there are no constraints

    @classmethod
    def of(
        cls,
        graph: StreamGraph,
        machines: Catalogue | Cluster,
        settings: PlannerSettings = USUAL_SETTINGS,
    ) -> "PlanProblem":
        """Return the problem of a graph on offers or on the machines of a cluster."""
        if graph.operators.window and graph.operators.fires_all.any():
            raise ProblemError(
                f"{quoted(graph.name)} has windows and operators that fire once per set of tuples; "
                "behind a window, the inputs of such an operator are equal at some rates only, and "
                "a plan tries many; let the operators fire 'each'"
            )
        reserved, reserves = reserve_of(settings.headroom, settings.errors)
        rules, constraints = None, settings.constraints
        if isinstance(machines, Catalogue):
            if constraints is not None:
                rules, machines = rules_on_offers(graph, constraints, machines)
            problem = cls(graph, settings, machines, reserved, reserves=reserves, rules=rules)
        else:
            if constraints is not None:
                rules = rules_on_cluster(graph, constraints, machines)
            catalogue, members = catalogue_of(machines, rules)
            problem = cls(graph, settings, catalogue, reserved, machines, members, reserves, rules)
        runs = allowed(problem.demand, problem.catalogue).any(axis=0)
        if not runs.all():
            v = int(np.argmin(runs))
            raise ProblemError(
                f"operator {quoted(problem.demand.name[v])} requires "
                f"{', '.join(sorted(graph.operators.requires[v]))}, which no offer has; add the "
                "tags to an offer"
            )
        problem._check_spares()
        return problem

    def _check_spares(self) -> None:
        """Refuse to survive the loss of the only machine on which some operator may run."""
        if self.after_loss is None:
            return
        offers, runs = self.catalogue.offers, allowed(self.after_loss, self.catalogue)
        numbers = np.array([offer.at_most for offer in offers]) @ runs
        if (numbers > 1).all():
            return
        v = int(np.argmin(numbers))
        machine = offers[int(np.argmax(runs[:, v]))].name
        which = "no other machine" if self.cluster is not None else "no offer"
        raise ProblemError(
            f"{which} may run {quoted(self.demand.name[v])} after {machine} is lost, so nothing "
            "survives; allow it elsewhere, or drop survives"
        )

    @cached_property
    def demand(self) -> Demand:
        """Demand of the graph at the rate that the plan is made for."""
        graph = self.graph.at_rate(self.with_reserve(self.rate))
        return demand_of(graph, self.settings.keep_parallelism, self.rules)

    @cached_property
    def after_loss(self) -> Demand | None:
        """Demand that remains after the loss of any one machine; None if nothing must survive."""
        share = self.settings.survives
        return self.demand.after_loss(share) if share else None

    def with_reserve(self, rate: float) -> float:
        """Tuples/s to carry, so that the reserved share stays free at a rate."""
        return rate / (1 - self.reserved)

    @property
    def is_priced(self) -> bool:
        """Whether machines have prices; else the cost of a plan is their number."""
        return self.cluster is None or bool(self.cluster.devices.price.any())

    def with_constraints(self, constraints: Constraints | None) -> "PlanProblem":
        """Return the same problem under other constraints."""
        machines: Catalogue | Cluster | None = self.cluster
        if machines is None:
            offers = tuple(
                replace(offer, tags=without_places(offer.tags)) for offer in self.catalogue.whole
            )
            machines = replace(self.catalogue, offers=offers, singled=frozenset())
        return PlanProblem.of(self.graph, machines, replace(self.settings, constraints=constraints))

    @property
    def is_linked(self) -> bool:
        """Whether links may limit what machines send to each other."""
        return self.cluster is not None or self.catalogue.is_linked

    def constraints_on(self, cluster: Cluster) -> Constraints:
        """Constraints with the names of the machines of a plan."""
        rules = self.settings.constraints or Constraints()
        if self.cluster is not None:
            return rules.on(cluster.devices)
        catalogue, names = self.catalogue, cluster.devices.name
        families = [offer_of(name, catalogue.alone) for name in names]

        def machines(label: str) -> set[str]:
            tag = label.removeprefix(TAG) if label.startswith(TAG) else None
            return {
                name
                for name, family, tags in zip(names, families, cluster.devices.tags, strict=True)
                if label in (name, family) or tag in tags
            }

        pins = {name: min(machines(label)) for name, label in rules.pin.items()}
        allowed = {
            name: set().union(*map(machines, labels)) for name, labels in rules.allowed.items()
        }
        return Constraints(pins, rules.colocate, rules.exlocate, allowed)

    @property
    def rate(self) -> float:
        """Tuples/s of all sources together."""
        return self.graph.source_rate

    @property
    def rate_limit(self) -> float:
        """Rate up to which the graph, with the reserve, stays below the limit of tuples/s.

        The output of a window grows no faster than the rate, so proportion is an upper limit.
        """
        limit = min(MAX_VALUE, self.rate * MAX_INPUT_RATE / float(self.graph.input_rate.max()))
        return limit * (1 - self.reserved) * (1 - SLACK)

    @cached_property
    def useful_offers(self) -> tuple[Offer, ...]:
        """Offers that are large enough for an operator at this rate (core speed, memory, tags)."""
        useful = set(self._useful(self.demand))
        if self.after_loss is not None:
            useful |= set(self._useful(self.after_loss))
        return tuple(offer for offer in self.catalogue.offers if offer in useful)

    def _useful(self, demand: Demand) -> tuple[Offer, ...]:
        may_run, speeds = allowed(demand, self.catalogue), subtask_speeds(demand, self.catalogue)

        def fits(v: int, offer: Offer, speed: float) -> bool:
            parts = int(demand.key_groups[v]) or int(demand.parallelism_limit[v]) or MAX_SUBTASKS
            stored = demand.memory[v] <= float(MARGIN) * float(offer.memory) * parts
            return bool(least_parallelism(demand, v, speed) and stored)

        return tuple(
            offer
            for offer, runs, speed in zip(self.catalogue.offers, may_run, speeds, strict=True)
            if any(fits(v, offer, float(speed[v])) for v in np.flatnonzero(runs).tolist())
        )

    def with_useful_offers(self) -> "PlanProblem":
        """Return the same problem without the offers on which no operator fits at this rate.

        Offers that ``at_least`` requires remain. If all others are too small, all offers remain.
        """
        if self.cluster is not None:
            return self
        useful = self.useful_offers
        offers = tuple(o for o in self.catalogue.offers if o.at_least or o in useful)
        if not useful or len(offers) == len(self.catalogue.offers):
            return self
        fewer = replace(self, catalogue=replace(self.catalogue, offers=offers))
        vars(fewer)["demand"] = self.demand  # it depends on the graph alone
        return fewer

    def at_rate(self, rate: float) -> "PlanProblem":
        """Return the same problem at another rate."""
        return replace(self, graph=self.graph.at_rate(rate))


def catalogue_of(
    cluster: Cluster, rules: PlanRules | None = None
) -> tuple[Catalogue, tuple[tuple[int, ...], ...]]:
    """Offers for the types of devices of a cluster, and the indices of the devices of each.

    Devices that rules tell apart are of several types. Without any prices, each costs 1.
    """
    kinds: dict[Offer, list[int]] = {}
    is_priced = bool(cluster.devices.price.any())
    for number, device in enumerate(cluster.devices):
        offer = Offer.of_device(device, float(device.price) if is_priced else 1.0)
        if rules is not None:
            offer = replace(offer, tags=offer.tags | rules.tags[device.name])
        kinds.setdefault(offer, []).append(number)
    offers = tuple(
        replace(offer, name=cluster.devices.name[numbers[0]], at_most=len(numbers))
        for offer, numbers in kinds.items()
    )
    costs = cluster.overhead_s, cluster.overhead_s_per_byte
    return Catalogue(offers, *costs, slot_sharing=True), tuple(map(tuple, kinds.values()))


def reserve_of(headroom: float, errors: PredictionErrors | None) -> tuple[float, dict[str, float]]:
    """Share that stays free, and the multiples of the rate by purpose.

    >>> reserve_of(0.2, None)
    (0.19999999999999996, {'the share that stays free': 1.25})
    """
    share = min(MAX_FREE, 1 - (1 - headroom))
    reserves = {FREE: 1 / (1 - headroom)} if headroom else {}
    if errors is not None and errors.least < 1:
        reserves[UNKNOWN] = 1 / (errors.least * errors.of_spread)
        if errors.of_spread > 1:
            reserves[VARIED] = errors.of_spread
        share = min(MAX_FREE, 1 - (1 - share) * errors.least)
    return share, reserves
