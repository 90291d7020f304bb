"""Runs Yosys commands, one an argument, in a process of its own: a failing command ends the process."""

import sys

from pyosys import libyosys

design = libyosys.Design()
for command in sys.argv[1:]:
    libyosys.run_pass(command, design)
