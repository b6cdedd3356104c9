"""Placeto: a policy that visits every operator once and decides where it goes.

After Addanki et al. (2019), and Wang et al. (2022) for the six orders of the visits.
"""
