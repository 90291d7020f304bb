"""Few kinds of bootstraps: against every choice that random programs have, and what is compiled with them."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from nn_world import quiet_compile, residual, rng, toy, weights  # noqa: F401
from test_nn_place import Maker, by_choice, random_chain

from crenel import ckks, nn
from crenel.errors import DeviceError, ParameterError, SerializationError, UnsupportedError
from crenel.nn import archive, planning
from crenel.nn.clear import Noise
from crenel.nn.cost import OPERATIONS, BootRow, CostModel, Row
from crenel.nn.measure import measure
from crenel.nn.passes.kinds import Few, Found, cheapest
from crenel.nn.passes.place import Bootstrap, Chain, Cut, Op, Parallel, Series, place
from crenel.nn.passes.priced import ends, output_level, targets, unraised
from crenel.nn.passes.prices import CountedPrices
from crenel.nn.plan import KINDS_ORIGIN, Boot, Refresh


class Kinds(Maker):
    """Cuts with some of three kinds, which end at levels of their own: what is deep takes the dear ones."""

    def cut(self):
        ends = [self.effective - k for k in range(3)]
        offered = [k for k in range(3) if self.rng.random() < 0.8] or [0]
        boots = [Bootstrap("abc"[k], float(self.rng.uniform(1, 2) + 2 * ends[k]), ends[k]) for k in offered]
        return Cut(self.name("cut"), tuple(boots), float(self.rng.choice([0.0, 1.0])))

    def long(self):
        """Operations with cuts between them, and perhaps a fork."""
        parts = []
        for _ in range(int(self.rng.integers(2, 5))):
            parts += [self.op(int(self.rng.integers(1, self.effective + 1))), self.cut()]
        if self.rng.random() < 0.3:
            parts[0] = Series((Parallel((Series((self.cut(),)), Series((self.op(1),)))), self.op(0)))
        return Series((*parts, self.op(int(self.rng.integers(1, self.effective + 1)))))


def used(choice):
    return {kind for _, kind in choice}


@pytest.mark.parametrize("most", [1, 2])
def test_the_least_of_few_kinds(rng, most):  # noqa: F811
    """Equal to the best of all executions with so few kinds, with its runner-up among these; and a refusal
    exactly where there is none."""
    solved = bounded = refused = 0
    while solved < 40:
        chain = random_chain(rng, 4)
        if chain.top > 4:
            continue
        program = Kinds(rng, chain, 4).long()
        choices = {c: p for c, p in by_choice(program, chain).items() if p < math.inf}
        allowed = {c: p for c, p in choices.items() if len(used(c)) <= most}
        if not allowed:
            with pytest.raises(UnsupportedError, match=f"at most {most} kinds" if choices else None):
                place(program, chain, Few(most))
            refused += 1
            continue
        found = place(program, chain, Few(most))
        taken = frozenset((s.name, s.bootstrap) for s in found.bootstraps)
        assert found.price == pytest.approx(min(allowed.values())) == pytest.approx(choices[taken])
        assert len(used(taken)) <= most and found.above == 0.0
        others = [p for c, p in choices.items() if c != taken and used(c) <= used(taken)]
        assert (found.runner_up is None) == (not others)
        if found.runner_up is not None:
            assert found.runner_up.price == pytest.approx(min(others))
        solved += 1
        bounded += min(choices.values()) < min(allowed.values()) - 1e-9
    print("solved", solved, "bounded", bounded, "refused", refused)


@pytest.mark.parametrize("solved", [1, 5, 10**6])
def test_search_of_kinds(rng, solved):  # noqa: F811
    """Prices of random solutions with random kinds: what is found, and how far it may be off."""
    for _ in range(60):
        names = "abcdefg"[: int(rng.integers(2, 8))]
        sizes = rng.integers(1, len(names) + 1, 12)
        known = [(float(rng.uniform(1, 2)), frozenset(rng.choice(list(names), int(k)))) for k in sizes]

        def solve(kinds, known=known):
            there = [one for one in known if one[1] <= kinds]
            return Found(*min(there, key=lambda one: one[0]), None) if there else None

        most = int(rng.integers(1, 4))
        few = [price for price, kinds in known if len(kinds) <= most]
        chosen = cheapest(solve, frozenset(names), Few(most), solved)
        if not few:
            assert chosen is None
        elif chosen is None:
            assert solved < 10**6
        else:
            assert len(chosen.found.kinds) <= most and min(few) <= chosen.found.price
            assert chosen.found.price - chosen.above <= min(few) + 1e-12
            assert solved < 10**6 or (chosen.above == 0.0 and chosen.found.price == min(few))
        kept = cheapest(solve, frozenset(names), Few(None, 0.1))
        least = min(price for price, _ in known)
        assert kept.found.price >= least
        for kind in kept.found.kinds:  # each saves a tenth of the least price
            without = solve(kept.found.kinds - {kind})
            assert without is None or without.price > kept.found.price + 0.1 * least


def test_a_kind_that_saves_little_is_left_out():
    prices = (0.0, 1.0, 1.0, 1.0, 1.0)
    chain = Chain.of(4, 0.01)
    cut = (Bootstrap("high", 10.0, 4), Bootstrap("low", 9.9, 2))
    parts = []
    for k in range(4):
        parts += [Op(f"op{k}", 4 if k % 2 else 2, prices), Cut(f"cut{k}", cut)]
    program = Series(tuple(parts[:-1]))
    both = place(program, chain, Few(6))
    assert {step.bootstrap for step in both.bootstraps} == {"high", "low"}
    one = place(program, chain, Few(6, 0.01))
    assert {step.bootstrap for step in one.bootstraps} == {"high"}
    assert both.price < one.price < 1.02 * both.price
    assert place(program, chain, Few(1)).price == one.price


def test_levels_at_which_bootstraps_get_cheaper():
    params = toy("toy-boot40")
    saved = unraised(params)
    assert len(saved) == output_level(params) + 1
    assert list(saved) == sorted(saved, reverse=True) and saved[-1] == 0 < saved[1]
    found = targets(params)
    assert found[0] == output_level(params) and list(found) == sorted(found, reverse=True)
    assert all(saved[low] >= saved[high] + 3 for high, low in itertools.pairwise(found))
    assert all(saved[level + 1] < saved[level] for level in found[1:])
    prices = CountedPrices(params, 1)
    by_level = [prices.bootstrap(Boot(64, target=level), 1) for level in found]
    assert by_level == sorted(by_level, reverse=True) and by_level[0] == prices.bootstrap(Boot(64), 1)


def test_plans_are_the_same_without_cuda(monkeypatch):
    params = toy("toy-boot35")
    boots = (Boot(64, target=9), Boot(16, pack=2, pair=True))

    def found():
        noise = Noise(params, np.random.default_rng(0))
        return [noise.of_bootstrap(boot) for boot in boots], unraised.__wrapped__(params)

    made, real = [], ckks.Context

    def without_cuda(params, device):
        made.append(device)
        if device == "cuda:dry":
            raise DeviceError("built without CUDA")
        return real(params, device)

    wanted = found()
    monkeypatch.setattr(planning.ckks, "Context", without_cuda)
    assert found() == wanted and made == ["cuda:dry", "cpu"] * 3


def table(params: ckks.Params, us: dict[int, float]) -> CostModel:
    """Made up: operations a microsecond a limb, bootstraps by the level at which they end."""
    rows = tuple(Row(name, n, 1, float(n), "made up") for name in OPERATIONS for n in range(1, 60))
    boots = tuple(
        BootRow(params.id, 1 << k, 0, level, 1, time, "made up", "real")
        for level, time in us.items() for k in range(params.slots.bit_length())
    )  # fmt: skip
    return CostModel("a device", params.log_n, params.alpha, rows, boots)


def levels(program: nn.Program) -> list[int]:
    return sorted({s.boot.target or 0 for s in program.plan.steps if isinstance(s, Refresh)})


def test_programs_with_bootstraps_to_several_levels(rng):  # noqa: F811
    """Activations of five levels and of fourteen: bootstraps to a low level and to the highest. What comes
    out is within eight times the simulation's error, and the keys are those of the highest level."""
    params = toy("toy-boot35")
    top = output_level(params)
    model = nn.Sequential(
        nn.Linear(weights(rng, 16, 16)), nn.ReLU(), nn.Linear(weights(rng, 16, 16)), nn.SiLU(),
        nn.Linear(weights(rng, 16, 16)), nn.ReLU(), nn.Linear(weights(rng, 3, 16)),
    )  # fmt: skip
    x = rng.uniform(-1, 1, (60, 16))
    options = {"params": params, "activation": "minimax", "degree": {"3": 31}, "composite": "15,15,15"}
    costs = table(params, {top: 1e5, 9: 5e4})
    program = quiet_compile(model, x, costs=costs, device="cpu", **options)
    kinds = program.demand.bootstraps
    assert len(levels(program)) == 2 and levels(program)[0] <= 9 < levels(program)[1]
    described = program.describe()
    assert f"{len(kinds)} kinds (at most 6): " in described and f"to level {kinds[0].target}" in described
    assert f"instead of all to level {top}, price" in program.explain()
    high = replace(kinds[0], target=max(kind.target for kind in kinds))
    all_keys = params.key_bytes(bootstrap=[kind.options() for kind in kinds])
    assert all_keys == params.key_bytes(bootstrap=[high.options()])
    again = nn.Program.from_bytes(program.to_bytes(), allow_insecure=True)
    assert again.describe() == described and again.fingerprint == program.fingerprint

    # Of before, when a kind could end at the highest level without saying so.
    steps = tuple(replace(s, boot=replace(s.boot, target=None)) if isinstance(s, Refresh) else s
                  for s in program.plan.steps)  # fmt: skip
    before = replace(program, plan=replace(program.plan, steps=steps, decisions=()))
    before = nn.Program.from_bytes(before.to_bytes(), allow_insecure=True)
    assert {kind.target for kind in before.demand.bootstraps} == {None}
    assert "1 kind: " in before.describe() and f"to level {top}; " in before.describe()

    at_top = quiet_compile(model, x, costs=table(params, {top: 1e5}), device="cpu", **options)
    few = [quiet_compile(model, x, costs=costs, device="cpu", **options, **one)
           for one in ({"lean": True}, {"kinds": 1})]  # fmt: skip
    for one in few:
        assert len(one.demand.bootstraps) == 1 and "1 kind (at most 1): " in one.describe()
    assert few[0].fingerprint == few[1].fingerprint
    times = [one.expected.milliseconds for one in (program, few[0], at_top)]
    assert times[0] < times[1] <= times[2] * (1 + 1e-12)

    spec = program.client
    client = spec.keygen("cpu")
    server = again.bind(client.evaluation_keys(spec))
    fresh = rng.uniform(-1, 1, (1, 16))
    found = client.decrypt(server.run(client.encrypt(fresh, spec)), spec)
    assert np.abs(found - program.simulate(fresh, noise=False)).max() < 8 * program.expected.noise


@pytest.mark.parametrize("kinds", [0, -1, 1.5, True, "two"])
def test_numbers_of_kinds_are_checked(kinds):
    model = nn.Sequential(nn.Linear(np.eye(2)))
    with pytest.raises(ParameterError, match=f"kinds {kinds}, expected a positive integer"):
        nn.compile(model, np.eye(2), params=toy("toy-boot35"), kinds=kinds)


@pytest.mark.parametrize(
    ("targets", "error", "words"),
    [
        ([-1], ParameterError, r"targets \[-1\], expected levels from 0 to 15"),
        ([3, 10**30], ParameterError, "expected levels from 0 to 15"),
        ([None], TypeError, "targets: expected an integer, got NoneType"),
        ([True], TypeError, "targets: expected an integer, got bool"),
        ([9.0], TypeError, "targets: expected an integer, got float"),
        ("9", TypeError, "targets: expected an integer, got str"),
        (9, TypeError, "targets: expected several, got int"),
    ],
)
def test_targets_are_checked(targets, error, words):
    params = toy("toy-boot35")
    context = ckks.Context(params, "cpu")
    with pytest.raises(error, match=words):
        measure(context, levels=[1], seconds=1e-6, slots=[2], targets=targets)
    with pytest.raises(error, match=words):
        ends(params, targets)


def test_a_target_is_measured_once():
    """Also the highest, which is measured whatever is named."""
    params = toy("toy-boot35")
    assert ends(params, [9, 15, np.int64(9), 0]) == [None, 9, 0] and ends(params, []) == []
    context = ckks.Context(params, "cpu")
    found = measure(context, levels=[1], seconds=1e-6, slots=[2], targets=[15, 9, 9])
    assert [row.output for row in found.bootstraps] == [15, 9]


def test_forged_kinds_are_refused_and_texts_are_legible(rng):  # noqa: F811
    """Levels above that of a bootstrap's result, and texts that would move a reader's cursor."""
    model = nn.Sequential(
        nn.Linear(weights(rng, 4, 4)), nn.ReLU(), nn.Linear(weights(rng, 4, 4)), nn.ReLU(),
        nn.Linear(weights(rng, 2, 4)),
    )  # fmt: skip
    params = toy("toy-boot35")
    options = {"params": params, "activation": "minimax", "composite": "15,15,15", "device": "cpu"}
    program = quiet_compile(model, rng.uniform(-1, 1, (40, 4)), **options)
    document, parts = archive.unpacked(program.to_bytes(), "program")
    (boot,) = [step["boot"] for step in document["plan"]["steps"] if "boot" in step]
    decisions, target = document["plan"]["decisions"], boot["target"]

    def loaded():
        return nn.Program.from_bytes(archive.packed("program", document, parts), allow_insecure=True)

    assert loaded().describe() == program.describe() and target == output_level(params)
    for forged in (target + 1, target + 2, params.normal_top_level, params.max_level, 0, True, 2.0, "9"):
        boot["target"] = forged
        with pytest.raises(SerializationError):
            loaded()
    boot["target"] = target
    document["plan"]["decisions"] = [*decisions, *[[KINDS_ORIGIN, "\x1b[2J\n" + "x" * 999, "\x9b", "\r"]] * 9]
    described, explained = loaded().describe(), loaded().explain()
    assert "1 kind (?[2J?" in described and "x" * 61 not in described
    assert all(c.isprintable() or c == "\n" for c in described + explained)
    assert explained.count("\n") == program.explain().count("\n") + 9
