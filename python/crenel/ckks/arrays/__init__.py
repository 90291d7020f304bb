"""Encrypted arrays: a shape and a packing over ciphertexts. Public names are in `crenel.ckks`."""

from crenel.ckks.arrays.array import Array, concatenate, encrypt
from crenel.ckks.arrays.layout import Layout, Packing

__all__ = ["Array", "Layout", "Packing", "concatenate", "encrypt"]
