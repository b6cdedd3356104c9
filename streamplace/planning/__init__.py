"""Plans: the cheapest machines, parallelism and placement that carry a rate, with a bound."""
