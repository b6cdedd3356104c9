import pytest
import torch

from streamplace.learn.tensors.few_rows import MOST_ROWS, multiply, multiply_transposed


@pytest.mark.parametrize("rows", [1, 3, MOST_ROWS, MOST_ROWS + 1])
@pytest.mark.parametrize(
    ("height", "kind"), [(8, torch.float32), (7, torch.float32), (8, torch.float64)]
)
def test_products_are_those_of_torch(rows, height, kind):
    """Of few rows and many, and where weights do not come in fours or are of another type."""
    generator = torch.Generator().manual_seed(rows)

    def random(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(kind)

    weight, wide, states = random(height, 5), random(rows, height), random(rows, 5 + 2)
    into, back = random(rows, height), random(rows, 5)
    multiply_transposed(states, weight, into)
    multiply(wide, weight, back)
    assert torch.allclose(into, states[:, :5] @ weight.t(), atol=1e-5)
    assert torch.allclose(back, wide @ weight, atol=1e-5)
