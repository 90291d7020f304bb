"""Passes of the compiler of networks: data in, data out."""
