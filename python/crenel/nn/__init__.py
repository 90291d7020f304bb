"""Trained networks as encrypted programs."""
