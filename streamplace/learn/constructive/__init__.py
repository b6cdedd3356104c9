"""Policies that build a whole placement: their contract, their learner and its replay memory."""
