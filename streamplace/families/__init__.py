"""Benchmark families: stream graphs made from parameters and a seed, one family, one file."""
