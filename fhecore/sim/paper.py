"""The paper's figures ([FHECore], tables V to X), to stand beside ours."""

INSTRUCTIONS = {  # table VI: A100, A100 with FHEC
    "HEMult": (139_449_088, 57_604_096), "Rotate": (146_941_952, 57_383_936), "Rescale": (29_974_528,
    13_278_720),
    "Bootstrap": (36_129_286_144, 17_073_057_143), "LR": (89_385_078_641, 33_384_095_353),
    "ResNet20": (556_714_062_191, 295_196_429_566), "BERT-Tiny": (1_809_067_028_156, 1_059_032_787_283),
}  # fmt: skip
PRIMITIVES_US = {"Rescale": (227, 178), "Rotate": (1261, 741), "HEMult": (1196, 675)}  # table VII
WORKLOADS_MS = {  # table VIII
    "Bootstrap": (314.67, 163.90), "LR": (747.44, 312.37), "ResNet20": (5028.23, 2262.16),
    "BERT-Tiny": (16583.83, 8300.38),
}  # fmt: skip
SHARE = {"NTT and INTT": 0.66, "scalar": 0.164, "base conversion": 0.126, "other": 0.05}  # figure 1
FFT_ITERATIONS_BEST = 5  # figure 8
EFFECTIVE_BOOTSTRAP_MS = (52.3, 27.3)


def ratio(pair: tuple[float, float]) -> float:
    """Without over with."""
    return pair[0] / pair[1]


def geometric_mean(values: list[float]) -> float:
    product = 1.0
    for v in values:
        product *= v
    return product ** (1 / len(values))
