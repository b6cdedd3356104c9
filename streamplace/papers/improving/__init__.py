"""Policies that improve a placement step by step (GiPH, Placeto): problems, messages, learner."""
