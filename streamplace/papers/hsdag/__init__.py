"""HSDAG learns how to group operators and where each group goes (Duan et al. 2024)."""
