"""Networks under encryption, measured: what `crenel workload resnet20` and its kind run.

A network is a `Task`: a module of `crenel.nn`, samples for its calibration, samples that are computed under
encryption, and what they should be. A file of this folder makes one; `run` compiles, encrypts, computes,
decrypts and compares, for all of them alike.
"""

from crenel.workloads.networks.measure import RunOptions, run
from crenel.workloads.networks.task import Task

__all__ = ["RunOptions", "Task", "run"]
