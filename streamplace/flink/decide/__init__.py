"""Decide on the layout of a measured job."""
