"""Reading and writing graphs, data sets, clusters, constraints and placements."""
