"""Policies that place groups of operators (`hdp`, `hsdag`): the groups, their features, placing."""
