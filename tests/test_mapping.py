import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from log_dqn import log_space
from log_dqn.mapping import LogMapping

mappings = st.builds(
    LogMapping, gamma=st.floats(0.1, 0.999), k=st.floats(1, 300), c=st.floats(0.1, 5),
    q_init=st.sampled_from([0.0, 0.5, 1.0]), additive=st.booleans(),
    linear_above=st.sampled_from([1e-6, 0.1, 1.0, 10.0, math.inf]),
)  # fmt: skip


LN2 = math.log(2)


@pytest.mark.parametrize(
    ("settings", "d", "values"),
    [
        # gamma^k = 0.25; d = -2 ln(0.75 + 0.25) = 0, so f(x) = 2 ln(x + 0.25).
        ({"q_init": 0.75, "additive": True}, 0, {0.0: -4 * LN2, 0.25: -2 * LN2, 0.75: 0}),
        # d = -2 ln(max(1, 0.25)) = 0, so f(x) = 2 ln(max(x, 0.25)).
        ({"q_init": 1}, 0, {0.0: -4 * LN2, 0.1: -4 * LN2, 0.5: -2 * LN2}),
        # q_init below the floor: d = -2 ln(0.25), and f(floor) = 0.
        ({"q_init": 0}, 4 * LN2, {0.25: 0}),
        # f(x) = 3 ln x up to 2, and 3 (ln 2 + x / 2 - 1) above.
        ({"c": 3, "q_init": 1, "linear_above": 2}, 0,
         {0.5: -3 * LN2, 2.0: 3 * LN2, 6.0: 3 * LN2 + 6}),
        # d = -f(q_init) also where q_init is on the line, and gamma^k for it.
        ({"c": 3, "q_init": 6, "linear_above": 2}, -3 * LN2 - 6, {}),
        ({"c": 3, "q_init": 0, "linear_above": 0.125}, 9 * LN2 - 3, {}),
        # The paper's: d_- = -0.5 * 100 ln 0.96.
        ({"gamma": 0.96, "k": 100, "c": 0.5, "q_init": 1}, 0, {}),
        ({"gamma": 0.96, "k": 100, "c": 0.5, "q_init": 0}, 2.0410997260127585, {}),
    ],
)  # fmt: skip
def test_worked_by_hand(settings, d, values):
    mapping = LogMapping(**{"gamma": 0.5, "k": 2, "c": 2} | settings)
    assert mapping.d == pytest.approx(d, rel=1e-12)
    with np.errstate(all="raise"):  # NumPy doesn't warn of log(0).
        for x, value in values.items():
            assert mapping.f(x) == pytest.approx(value)
            assert mapping.inverse(value) == pytest.approx(x if mapping.additive else max(x, 0.25))


def test_the_slope_is_the_same_on_both_sides_of_b():
    below, at, above = LogMapping(0.5, 2, 3, 1, linear_above=2).f(np.array([2 - 1e-6, 2, 2 + 1e-6]))
    assert [at - below, above - at] == pytest.approx([1.5e-6] * 2, rel=1e-5)


@given(mappings, st.floats(-700, math.log(1000)))
def test_inverse_undoes_f(mapping, log_x):
    x = math.exp(log_x)
    floor = math.exp(mapping.log_floor)
    back = mapping.inverse(mapping.f(x))
    if mapping.additive:
        # What f can resolve of x: float64's spacing of ln(x + gamma^k), seen in the value space.
        assert back == pytest.approx(x, rel=1e-9, abs=1e-12 * floor)
    else:
        assert back == pytest.approx(max(x, floor), rel=1e-9)


@given(mappings, st.floats(1e-6, 1000))
def test_f_equals_the_paper_at_high_precision(mapping, x):
    mpmath.mp.dps = 400
    floor = mpmath.mpf(mapping.gamma) ** mapping.k
    combine = (lambda a, b: a + b) if mapping.additive else max
    b = mpmath.mpf(mapping.linear_above)

    def log_linear(q):
        return mpmath.log(q) if q <= b else mpmath.log(b) + q / b - 1

    d = -mapping.c * log_linear(combine(mapping.q_init, floor))
    expected = mapping.c * log_linear(combine(mpmath.mpf(x), floor)) + d
    assert mapping.d == pytest.approx(float(d), rel=1e-12, abs=1e-12)
    assert mapping.f(x) == pytest.approx(float(expected), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("gamma", v) for v in (0.0, 1.0, -0.5, 1.5, math.nan, "0.9", None, True)],
        *[("k", v) for v in (0, -1, math.inf, math.nan)],
        *[("c", v) for v in (0, -0.5, math.nan)],
        *[("q_init", v) for v in (-1e-9, math.nan, math.inf)],
        *[("linear_above", v) for v in (0, -1.0, math.nan, "one")],
    ],
)
def test_a_parameter_out_of_range_is_named(name, value):
    settings = {"gamma": 0.96, "k": 100, "c": 0.5, "q_init": 1.0, name: value}
    with pytest.raises(ValueError, match=rf"^{name} is {value!r}; it must be"):
        LogMapping(**settings)


def test_arrays_of_every_namespace():
    import jax.numpy as jnp
    import tensorflow as tf

    from log_dqn.tf.namespace import xp as tf_xp

    x = np.array([[0.0, 0.01], [0.5, 3.0]], np.float32)
    for additive, b in itertools.product((True, False), (0.1, math.inf)):
        mapping = LogMapping(0.96, 100, 0.5, 0.0, additive, b)
        expected = mapping.f(x.astype(np.float64))
        with tf.compat.v1.Session(graph=tf.Graph()) as session, session.graph.as_default():
            of_tf = session.run(mapping.f(tf.constant(x), xp=tf_xp))
            back_tf = session.run(mapping.inverse(tf.constant(of_tf), xp=tf_xp))
        of_jax = mapping.f(jnp.asarray(x), xp=jnp)
        back_jax = mapping.inverse(of_jax, xp=jnp)
        clipped = x if additive else np.maximum(x, 0.96**100)
        for values, back in ((of_tf, back_tf), (np.asarray(of_jax), np.asarray(back_jax))):
            assert values.dtype == np.float32
            np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(back, clipped, rtol=1e-5, atol=1e-6)


def test_the_additive_inverse_far_below_its_lowest_value():
    for gamma, k, tq in (
        (0.96, 100, np.float32(-60)),
        (0.5, 100, np.float32(-60)),
        (0.1, 300, -40.0),
    ):
        mapping = LogMapping(gamma, k, 0.5, 0.0, additive=True)
        assert mapping.inverse(tq) == pytest.approx(-(gamma**k), rel=1e-6, abs=0)
    # Below it by no more than 10: gamma^k (e^-10 - 1).
    mapping = LogMapping(0.5, 10, 0.5, 0.0, additive=True)
    tq = 0.5 * (10 * math.log(0.5) - 10) + mapping.d
    assert mapping.inverse(tq) == pytest.approx(2**-10 * (math.exp(-10) - 1), rel=1e-12)


def test_none_is_no_line():
    settings = {"gamma": 0.96, "k": 100, "c": 0.5, "q_init": 1.0}
    none, default = LogMapping(**settings, linear_above=None), LogMapping(**settings)
    assert (none.log_b, none.d) == (default.log_b, default.d) == (np.inf, 0.0)
    assert none.f(1e6) == default.f(1e6)
    assert log_space.LogUpdate(linear_above=None).rule == log_space.LogUpdate().rule
