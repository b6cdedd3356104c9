"""Placeto: a policy that visits every operator once and decides where it goes."""
