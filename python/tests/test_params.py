"""Parameters: generated, named, explained, refused."""

import pickle

import pytest
from conftest import toy

from crenel import ckks


def test_generated_parameters_hold_what_was_asked_for():
    p = ckks.Params(log_n=13, scale_bits=30, depth=3)
    assert (p.log_n, p.slots, p.ring_dim, p.log_scale) == (13, 4096, 8192, 30)
    assert p.max_level == p.normal_top_level == 3
    assert p.security_bits >= 128 and not p.insecure
    assert p.log_pq <= ckks.max_log_pq(13)
    assert len(p.primes) == p.chain_limbs + p.alpha == sum(p.levels[-1]) + p.alpha
    assert p.primes == p.terminal_primes[::-1] + p.main_primes + p.special_primes


def test_scales_follow_the_rescale_ratios():
    p = ckks.preset("leveled-n14-s40")
    for level in range(1, p.max_level + 1):
        assert p.scale(level) ** 2 / p.rescale_ratio(level) == pytest.approx(p.scale(level - 1), rel=1e-12)
        assert p.log_q(level) > p.log_q(level - 1)


def test_every_named_set_can_be_made_and_only_toys_are_insecure():
    for name in ckks.preset_names():
        p = toy(name)
        assert p.name == name
        assert p.insecure == name.startswith("toy-")


def test_toy_sets_need_permission_and_warn_at_the_calling_line():
    with pytest.raises(ckks.ParameterError, match="allow_insecure"):
        ckks.preset("toy-boot40")
    with pytest.warns(ckks.InsecureParametersWarning, match="toy-boot40") as caught:
        ckks.preset("toy-boot40", allow_insecure=True)
    assert caught[0].filename == __file__
    with pytest.warns(ckks.InsecureParametersWarning):
        assert ckks.Params(log_n=11, scale_bits=40, depth=2, allow_insecure=True).insecure


def test_insecure_parameters_are_refused_with_the_numbers():
    with pytest.raises(ckks.ParameterError, match=r"log PQ.*bound"):
        ckks.Params(log_n=12, scale_bits=40, depth=8)


@pytest.mark.parametrize("bad", [{"log_n": 9}, {"log_n": -1}, {"scale_bits": 41}, {"depth": 0}])
def test_arguments_out_of_range(bad):
    with pytest.raises(ckks.ParameterError) as caught:
        ckks.Params(**{"log_n": 14, "scale_bits": 40, "depth": 2, **bad})
    assert caught.value.fields


def test_levels_out_of_range():
    p = toy()
    for call, level in ((p.scale, 7), (p.scale, -1), (p.rescale_ratio, 0), (p.log_q, 99)):
        with pytest.raises(ckks.ParameterError) as caught:
            call(level)
        assert caught.value.fields["level"] == level


def test_from_primes_rebuilds_and_reports_every_problem():
    p = ckks.preset("leveled-n14-s40")
    given = {
        "log_n": p.log_n,
        "log_scale": p.log_scale,
        "main": p.main_primes,
        "terminal": p.terminal_primes,
        "auxiliary": p.special_primes,
        "levels": p.levels,
    }
    assert ckks.Params.from_primes(**given) == p
    broken = {**given, "main": [p.main_primes[0] + 2, *p.main_primes[1:]], "levels": [(0, 2), (0, 2)]}
    with pytest.raises(ckks.ParameterError) as caught:
        ckks.Params.from_primes(**broken)
    assert {"prime_not_prime", "level_not_increasing"} <= set(caught.value.fields)


def test_identity():
    p, q = ckks.preset("leveled-n14-s40"), ckks.preset("leveled-n14-s40")
    assert p == q and hash(p) == hash(q) and p.id == q.id
    assert p != ckks.preset("leveled-n13-s40") and p != 3
    assert pickle.loads(pickle.dumps(p)) == p


def test_explain_says_the_numbers():
    text = ckks.preset("boot40").explain()
    for part in ("32768", "2^16", "Levels: 16", "12 levels for bootstrapping", "1745.9", "128 bits"):
        assert part in text
    assert "INSECURE" in toy().explain()


def test_key_size_of_explain_is_the_true_one(world):
    assert world.keys.nbytes % (len(world.keys.rotations) + 2) == 0
    key = world.keys.nbytes / (len(world.keys.rotations) + 2) / 2**20
    assert f"{key:.2f} MiB a key" in world.params.explain()


def test_repr():
    assert "leveled-n14-s40" in repr(ckks.preset("leveled-n14-s40"))
