"""Training of a learner by itself: batches and steps of Adam, and nothing kept."""

from math import inf

import numpy as np
import torch


def rows(*numbers):
    """Rows of training problems."""
    return np.array(numbers, np.int64)


def train(learner, epochs, rate=5e-3):
    """Go through the problems in shuffled batches of eight, by seeds that depend on the epoch."""
    adam = torch.optim.Adam(learner.module.parameters(), rate)
    for epoch in range(epochs):
        rows = np.random.default_rng(epoch).permutation(len(learner.sizes(epoch)))
        for start in range(0, len(rows), 8):
            part = rows[start : start + 8]
            adam.zero_grad()
            loss, _ = learner.loss(part, epoch, 1000 * epoch + start)
            (loss / len(part)).backward()
            adam.step()


def taught(learner, steps, rate, norm=inf):
    """Losses and reports of steps on the first problem; gradients have at most a norm."""
    adam, found = torch.optim.Adam(learner.module.parameters(), rate), []
    for step in range(steps):
        loss, report = learner.loss(rows(0), 0, step)
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learner.module.parameters(), norm)
        adam.step()
        found.append((float(loss.detach()), report))
    return found
