"""The interactive page: one HTML file with a graph, its devices, and placements with values."""
