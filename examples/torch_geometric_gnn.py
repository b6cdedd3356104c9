"""A graph neural network of torch-geometric that learns which streams cross the network.

Run: pip install 'streamplace[torch-geometric]' && python torch_geometric_gnn.py
"""

import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import SAGEConv

import streamplace
from streamplace import PlacementDataset

# A benchmark, and good placements of its graphs as labels.
graphs = streamplace.generate("branched", branches=3, depth=4, devices=3, copies=100)
placed = {graph.name: streamplace.place(graph, placer="metis-oracle") for graph in graphs}
train, test = (PlacementDataset(graphs, part, placements=placed) for part in ("train", "test"))


class Crossings(torch.nn.Module):
    """Score of every stream: positive where its operators run on different devices."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = SAGEConv(4, 32), SAGEConv(32, 32)
        self.score = torch.nn.Linear(65, 1)

    def forward(self, data: Data) -> torch.Tensor:
        """Scores of the streams of a graph or of a batch."""
        x = self.second(self.first(data.x, data.edge_index).relu(), data.edge_index).relu()
        source, target = data.edge_index
        return self.score(torch.cat([x[source], x[target], data.edge_attr], dim=1)).flatten()


def crosses(data: Data) -> torch.Tensor:
    """Label of every stream."""
    source, target = data.edge_index
    return (data.y[source] != data.y[target]).float()


torch.manual_seed(0)
model = Crossings()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _epoch in range(40):
    for batch in DataLoader(train, batch_size=16, shuffle=True):
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(batch), crosses(batch))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

(every,) = DataLoader(test, batch_size=len(test))
labels = crosses(every)
right = ((model(every) > 0).float() == labels).float().mean().item()
usual = max(labels.mean().item(), 1 - labels.mean().item())
print(f"{len(train)} graphs to learn from, {len(test)} to test on")
print(f"right for {right:.1%} of the streams; always the more frequent answer: {usual:.1%}")
