"""REINFORCE from nothing, on the environment of learning: a policy that beats METIS in seconds.

For each operator, a small network sees what every device and link would carry after it, and chooses
a device. Of eight placements of a graph, those better than their mean become likelier.
"""

import torch
from torch import Tensor, nn
from torch.distributions import Categorical

import streamplace
from streamplace import Cluster, Problem
from streamplace.learn.env import Environment

SAMPLES, BATCH, STEPS = 8, 64, 150
CLOSED = -1e9


class Policy(nn.Module):
    """Scores devices by their loads, and by those of all others in the mean and at most."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.device = nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, width))
        self.score = nn.Sequential(nn.Linear(3 * width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, env: Environment, samples: int) -> Tensor:
        """Place all operators; log-probabilities [G, S]. Of one sample, the likeliest is taken."""
        seen, total = env.reset(samples), torch.zeros(())
        while not env.done:
            logits = self.logits(env, seen).masked_fill(~seen["open"], CLOSED)
            choice = Categorical(logits=logits)
            devices = choice.sample() if samples > 1 else logits.argmax(-1)
            total = total + choice.log_prob(devices)
            seen = env.step(devices)
        return total

    def logits(self, env: Environment, seen: dict[str, Tensor]) -> Tensor:
        """Scores [G, S, D] of the devices for the operator that is placed now."""
        t, flow = env.step_number, seen["flow"]
        after = seen["load"] + env.loads[:, t, None]
        links = seen["link"] + seen["added"]  # [G, S, from, to]
        coming = env.loads[:, t:, 0].sum(1)[:, None, None].expand_as(after)
        columns = [
            after,
            (after - 1).clamp(min=0),
            links.amax(2),
            flow,
            seen["upstream"],
            seen["loose"],
            (seen["used"] > 0).float(),
            coming,
        ]
        each = self.device(torch.stack(columns, dim=3))  # [G, S, D, W]
        mean, most = each.mean(2, keepdim=True), each.amax(2, keepdim=True)
        others = torch.cat([mean, most], dim=3).expand(-1, -1, each.shape[2], -1)
        return self.score(torch.cat([each, others], dim=3)).squeeze(-1)


def graphs(seed: int, copies: int) -> list[Problem]:
    """Graphs of three branches of four operators, which need three devices."""
    made = streamplace.generate(
        "branched", branches=3, depth=4, devices=3, copies=copies, seed=seed
    )
    return [Problem(graph, Cluster.uniform(5)) for graph in made]


torch.manual_seed(0)
training, test = graphs(seed=1, copies=512), graphs(seed=2, copies=100)
policy = Policy()
adam = torch.optim.Adam(policy.parameters(), 3e-3)
for step in range(STEPS):
    chosen = torch.randperm(len(training))[:BATCH].tolist()
    env = Environment.of([training[i] for i in chosen])
    log_probability = policy(env, SAMPLES)
    reward = env.reward().float()
    better = (reward - reward.mean(1, keepdim=True)) / (reward.std(1, keepdim=True) + 1e-3)
    adam.zero_grad()
    (-(better * log_probability).mean()).backward()
    nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
    adam.step()
    if step % 25 == 24:
        print(f"step {step + 1}: mean throughput {reward.mean():.3f}")

env = Environment.of(test)
with torch.no_grad():
    policy(env, samples=1)
metis = [streamplace.place(problem, placer="metis").value for problem in test]
print(f"100 other graphs: {env.reward().mean():.3f}, METIS {sum(metis) / len(metis):.3f}")
