"""The FHECore instruction, emulated: products of tiles modulo a number a column, and what is built of them.

FHECore is a functional unit for GPUs [FHECore]: one instruction multiplies a 16 x 16 tile by a 16 x 8 tile
and adds a third, every column modulo its own 32-bit number. Here it runs in software, bit for bit as the RTL
in `fhecore/` of the sources, on every device of the library:

`fhe_sync`
    tiles of 16 x 16 by tiles of 16 x 16
`ntt`
    negacyclic transforms whose products are all made by the instruction
`base_convert`
    centred RNS base conversion, the same way
`counting`
    what was executed, by ``with fhecore.counting() as counts:``
`transform_work`, `conversion_work`
    what will be executed, by formula, and how full the unit is

>>> import numpy as np
>>> from crenel import fhecore
>>> with fhecore.counting() as counts:
...     y = fhecore.ntt(np.arange(65536), 1095761921, device="ref")
>>> counts.fhe_sync, counts.fhec
(1024, 2048)
"""

from crenel._crenel import FhecoreCounts as Counts
from crenel._crenel import FhecoreWork as Work
from crenel._crenel import fhecore_conversion_work as conversion_work
from crenel._crenel import fhecore_transform_work as transform_work
from crenel.fhecore.counts import counting
from crenel.fhecore.operations import base_convert, fhe_sync, ntt

__all__ = [
    "Counts",
    "Work",
    "base_convert",
    "conversion_work",
    "counting",
    "fhe_sync",
    "ntt",
    "transform_work",
]
