"""Exports to real engines, and control of those that run: one engine, one file or folder.

Graphs of other programs are read in `streamplace.io`.
"""
