"""Policies that place groups of operators (HDP, HSDAG): the groups, their features, placing."""
