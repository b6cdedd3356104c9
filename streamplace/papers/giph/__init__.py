"""GiPH: a policy that improves a placement by moving one task after the other (Hu et al. 2023)."""
