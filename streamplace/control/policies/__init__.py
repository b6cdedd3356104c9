"""Policies: one file per rule that moves a running job from plan to plan."""
