"""The three models of the DREAM paper (Ni et al., AAAI 2020)."""
