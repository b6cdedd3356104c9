"""Draws by a counter."""

import torch

from streamplace.learn.tensors.draws import GOLDEN, below, child, gumbel, mixed, uniform


def test_words_are_those_of_splitmix64():
    """The first numbers of the seed 1234567, as published for other implementations."""
    words = mixed(torch.tensor(1234567) + GOLDEN * torch.arange(1, 6)).tolist()
    assert [word % 2**64 for word in words] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


def test_a_number_depends_on_its_key_and_indices_alone():
    keys = child(torch.tensor(7), torch.arange(5))
    many = uniform(keys, 6, 4)
    assert torch.equal(uniform(keys[2:3], 3, 2), many[2:3, :3, :2])
    assert many.unique().numel() == many.numel()


def test_numbers_are_spread_evenly_between_0_and_1():
    found = uniform(child(torch.tensor(1), torch.arange(4)), 50_000)
    assert ((found > 0) & (found < 1)).all()
    assert torch.allclose(found.mean(1), torch.tensor(0.5), atol=0.005)
    assert torch.allclose(found.var(1), torch.tensor(1 / 12), atol=0.002)
    assert gumbel(child(torch.tensor(1), torch.arange(4)), 50_000).isfinite().all()


def test_whole_numbers_are_below_their_count():
    nearly = torch.tensor([0.0, 0.5, 1 - 2**-24])
    assert below(nearly, torch.tensor(5)).tolist() == [0, 2, 4]
    assert below(nearly, torch.tensor([1, 2, 3])).tolist() == [0, 1, 2]
