import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from streamsim import build_instance, resource_loads, throughput
from streamsim_strategies import Description, Ints, placed

from streamplace.learn.steady import SteadyBatch, fill

DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")),
]


def padded(batch: SteadyBatch, rows: list[Ints], fill_with: int = 0) -> torch.Tensor:
    """Placements [G, S, N] of graphs of different sizes."""
    width = batch.n_operators
    full = [
        np.pad(row, ((0, 0), (0, width - row.shape[1])), constant_values=fill_with) for row in rows
    ]
    return torch.from_numpy(np.stack(full).astype(np.int64))


def expected(cases: list[tuple[Description, Ints]]) -> np.ndarray:
    return np.stack([throughput(problem.instance, rows) for problem, rows in cases])


@given(st.lists(placed(count=3, max_sources=4, max_operators=6), min_size=1, max_size=4))
@settings(max_examples=60)
def test_float64_agrees_with_the_kernels(cases: list[tuple[Description, Ints]]) -> None:
    batch = SteadyBatch.of([problem.instance for problem, _ in cases], dtype=torch.float64)
    found = batch.throughput(padded(batch, [rows for _, rows in cases]))
    np.testing.assert_allclose(found.numpy(), expected(cases), rtol=1e-9)


@given(st.lists(placed(count=3, max_operators=6), min_size=1, max_size=4))
@settings(max_examples=60)
def test_float32_agrees_to_its_precision(cases: list[tuple[Description, Ints]]) -> None:
    batch = SteadyBatch.of([problem.instance for problem, _ in cases])
    found = batch.throughput(padded(batch, [rows for _, rows in cases]))
    assert found.dtype == torch.float32
    np.testing.assert_allclose(found.numpy(), expected(cases), rtol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
@given(cases=st.lists(placed(count=2, plain=True, max_sources=1), min_size=2, max_size=4))
@settings(max_examples=20)
def test_every_device_agrees(device: str, cases: list[tuple[Description, Ints]]) -> None:
    made = SteadyBatch.of([problem.instance for problem, _ in cases], device=device)
    moved = SteadyBatch.of([problem.instance for problem, _ in cases]).to(device)
    placements = padded(made, [rows for _, rows in cases]).to(device)
    for batch in (made, moved):
        found = batch.throughput(placements).cpu().numpy()
        np.testing.assert_allclose(found, expected(cases), rtol=1e-5)


@given(st.lists(placed(count=2, max_sources=2, max_operators=5), min_size=2, max_size=3))
@settings(max_examples=30)
def test_padding_operators_contribute_nothing_wherever_they_are(
    cases: list[tuple[Description, Ints]],
) -> None:
    batch = SteadyBatch.of([problem.instance for problem, _ in cases], dtype=torch.float64)
    rows = [rows for _, rows in cases]
    at_first = batch.throughput(padded(batch, rows, 0))
    at_last = batch.throughput(padded(batch, rows, batch.n_devices - 1))
    assert torch.equal(at_first, at_last)


@given(
    st.lists(placed(count=2, max_sources=2, max_operators=5), min_size=3, max_size=3),
    st.permutations(range(3)),
)
@settings(max_examples=30)
def test_taking_graphs_keeps_their_values(
    cases: list[tuple[Description, Ints]], order: list[int]
) -> None:
    batch = SteadyBatch.of([problem.instance for problem, _ in cases], dtype=torch.float64)
    placements, chosen = padded(batch, [rows for _, rows in cases]), torch.tensor(order[:2])
    found = batch.take(chosen).throughput(placements[chosen])
    assert torch.equal(found, batch.throughput(placements)[chosen])


@given(placed(max_sources=3))
@settings(max_examples=40)
def test_loads_of_the_sources_add_up(case: tuple[Description, Ints]) -> None:
    problem, rows = case
    batch = SteadyBatch.of([problem.instance], dtype=torch.float64)
    parts = batch.loads(padded(batch, [rows]))
    loads = resource_loads(problem.instance, rows[0])
    for part, kind in zip(parts, loads[: min(len(parts), 2)], strict=False):
        found = part[0, 0].sum(0).double().numpy()
        np.testing.assert_allclose(found, kind.ravel(), rtol=1e-5)


def test_a_graph_without_sources_is_never_limited() -> None:
    idle = build_instance(
        rate=[0.0], seconds=[[1.0]], source=[], target=[], device_type=[0], seconds_per_byte=[[0]]
    )
    batch = SteadyBatch.of([idle])
    assert batch.throughput(torch.zeros(1, 1, 1, dtype=torch.int64)).item() == 1.0


def test_plain_batches_hold_nothing_else() -> None:
    plain = build_instance(
        rate=[1.0, 0.0],
        seconds=[[0.1], [0.1]],
        source=[0],
        target=[1],
        device_type=[0, 0],
        seconds_per_byte=np.ones((2, 2)),
    )
    batch = SteadyBatch.of([plain])
    assert batch.costs is None
    assert batch.core_load is None
    assert batch.load.shape == (1, 1, 2, 1)


def test_filling_stops_sources_in_stages() -> None:
    # resource 0 carries 2 x0 + 2 x1, resource 1 carries x1 + 1.5 x2, resource 2 carries 0.8 x3
    loads = torch.tensor([[2.0, 0, 0], [2, 1, 0], [0, 1.5, 0], [0, 0, 0.8]], dtype=torch.float64)
    weight = torch.full((4,), 0.25, dtype=torch.float64)
    assert fill(loads, weight).item() == pytest.approx((0.25 + 0.25 + 0.5 + 1) / 4)
