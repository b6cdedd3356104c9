"""Reports as pages: one HTML file with a graph, its devices, and placements with their values."""
