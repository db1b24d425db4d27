"""Environments of gymnax, and of one's own in JAX; `test_start.py` trains on them."""

import sys

import gymnax
import jax
import jax.numpy as jnp
import pytest

from log_dqn import games
from log_dqn.vectorized import jax_environments


def test_ends_of_other_dtypes():
    env = "tests.vectorized.own_jax_environment:ends_in_floats"
    made = jax_environments.create_environment(10**9, env)
    _, outcome = made.step(made.reset(jax.random.key(0))[0], jnp.int32(0))
    assert (outcome.ended.dtype, bool(outcome.ended), bool(outcome.cut)) == (bool, True, False)


@pytest.mark.parametrize("package", [True, False])
def test_an_error_below_a_folder_named_as_a_library(tmp_path, monkeypatch, package):
    path = tmp_path / "jax" / "gymnasium" / "broken" / ("__init__.py" if package else "inner.py")
    path.parent.mkdir(parents=True)
    path.write_text("raise RuntimeError('no licence')\n")
    monkeypatch.syspath_prepend(path.parents[1])
    monkeypatch.delitem(sys.modules, "broken", raising=False)
    message = f"one that can be made: no licence (RuntimeError in {path}, line 1)"
    with pytest.raises(ValueError) as raised:
        jax_environments.create_environment(9, "broken.inner:make")
    said = str(raised.value).splitlines()[0]  # gin adds a line.
    assert said == f"env is 'broken.inner:make'; it must be {message}"


def test_settings_of_gymnax():
    short = jax_environments.create_environment(
        10**9, "CartPole-v1", True, {"max_steps_in_episode": 7}
    )
    state, _ = short.reset(jax.random.key(0))
    step, ends = jax.jit(short.step), []
    for i in range(7):
        state, outcome = step(state, jnp.int32(i % 2))
        ends.append((bool(outcome.ended), bool(outcome.cut)))
    assert ends == [(False, False)] * 6 + [(True, True)]
    sized = jax_environments.create_environment(10**9, "DeepSea-bsuite", True, {"size": 5})
    assert sized.frame_shape == (5, 5)


def test_the_names_of_gymnax():
    def is_discrete(name):
        environment, params = gymnax.make(name)
        return hasattr(environment.action_space(params), "n")

    # MNIST is downloaded when it is made.
    names = [n for n in gymnax.registered_envs if "MNIST" in n or is_discrete(n)]
    assert tuple(names) == games.GYMNAX
