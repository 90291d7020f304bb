"""Benchmarks that an installation can run; those of single operations are in the source tree: ./run bench."""
