"""Benchmark families of papers, one file each, and the parts that several of them share."""
