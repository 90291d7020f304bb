"""Wheels: how they are made (build), what is looked for in them (audit), where they are tried (roots)."""
