"""Reports as pages: one HTML file with a graph, its devices, and what a placement comes to."""
