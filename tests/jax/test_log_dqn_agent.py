import inspect

import gin
import jax
import numpy as np
import optax
import pytest
from dopamine.jax import networks
from dopamine.jax.agents.dqn import dqn_agent
from flax import linen as nn

from log_dqn.jax import heads, update
from log_dqn.jax.log_dqn_agent import JaxLogDQNAgent

NUM_ACTIONS = 3


@pytest.fixture(autouse=True)
def clean_gin():
    gin.clear_config()
    gin.parse_config("ReplayBuffer.max_capacity = 100\nReplayBuffer.batch_size = 8")
    yield
    gin.clear_config()


class _Linear(nn.Module):
    """A network that compiles quickly."""

    num_actions: int

    @nn.compact
    def __call__(self, x):
        x = nn.Dense(self.num_actions)(x.astype(np.float32).reshape(-1))
        return heads.TwoHeadedOutput(x, None, None)


def small_agent(agent_class=JaxLogDQNAgent, num_actions=NUM_ACTIONS, **settings):
    defaults = {
        "observation_shape": (4, 1),
        "stack_size": 1,
        "network": _Linear,
        "min_replay_history": 20,
        "seed": 0,
    }
    return agent_class(num_actions, **{**defaults, **settings})


def play(agent, steps, seed=0):
    """Steps through episodes of 20 random observations; returns the actions."""
    rng = np.random.default_rng(seed)
    actions = []
    for step in range(steps):
        observation = rng.normal(size=(4, 1))
        if step % 20 == 0:
            actions.append(agent.begin_episode(observation))
        else:
            actions.append(agent.step(float(rng.choice([-1, 0, 1])), observation))
        if step % 20 == 19:
            agent.end_episode(1.0)
    return np.array(actions)


def leaves(tree):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def test_training_changes_the_online_network_and_syncs_the_target():
    agent = small_agent(update_period=4, target_update_period=1000)
    start = leaves(agent.online_params)
    play(agent, 100)
    trained = leaves(agent.online_params)
    for old, target, new in zip(start, leaves(agent.target_network_params), trained, strict=True):
        np.testing.assert_array_equal(old, target)
        assert np.isfinite(new).all() and (old != new).any()
        assert new.dtype == np.float32
    agent._sync_weights()
    for target, new in zip(leaves(agent.target_network_params), trained, strict=True):
        np.testing.assert_array_equal(target, new)


@pytest.mark.parametrize(
    ("target_update_period", "trainings", "synced"), [(1, 19, True), (1000, 19, False)]
)
def test_the_schedule_of_updates(monkeypatch, target_update_period, trainings, synced):
    agent = small_agent(update_period=4, target_update_period=target_update_period)
    counted = []
    train = agent._train
    monkeypatch.setattr(agent, "_train", lambda *args: counted.append(1) or train(*args))
    play(agent, 100)
    # From the 21st stored transition on (each is stored one step late), every 4th of 100 steps.
    assert len(counted) == trainings
    same = all(
        (old == new).all()
        for old, new in zip(
            leaves(agent.online_params), leaves(agent.target_network_params), strict=True
        )
    )
    assert same == synced


def test_a_game_with_one_action(tmp_path):
    agent = small_agent(num_actions=1, summary_writer=str(tmp_path), summary_writing_frequency=4)
    start = leaves(agent.online_params)
    assert set(play(agent, 40)) == {0}
    for old, new in zip(start, leaves(agent.online_params), strict=True):
        assert np.isfinite(new).all() and (old != new).any()


def test_no_gradient_flows_through_the_target():
    agent = small_agent()
    play(agent, 20)
    agent._sample_from_replay_buffer()

    def value(params, target_params):
        tqs = agent.network_def.batch_outputs(params, agent.replay_elements["state"])
        next_tqs = agent.network_def.batch_outputs(
            target_params, agent.replay_elements["next_state"]
        )
        return update.batch_loss(
            agent._update.constants,
            "huber",
            tqs,
            next_tqs,
            agent.replay_elements["action"],
            agent.replay_elements["reward"],
            agent.replay_elements["terminal"],
        )[0]

    online, target = jax.grad(value, argnums=(0, 1))(agent.online_params, agent.online_params)
    assert all((leaf != 0).any() for leaf in leaves(online))
    assert all((leaf == 0).all() for leaf in leaves(target))


def test_the_seed_decides_actions_and_weights():
    runs = []
    for seed in (1, 1, 2):
        agent = small_agent(seed=seed)
        runs.append((play(agent, 100), leaves(agent.online_params)))
    np.testing.assert_array_equal(runs[0][0], runs[1][0])
    assert (runs[0][0] != runs[2][0]).any()
    for first, again, other in zip(runs[0][1], runs[1][1], runs[2][1], strict=True):
        np.testing.assert_array_equal(first, again)
        assert (first != other).any()


def test_a_checkpoint_resumes_exactly(tmp_path):
    settings = {"target_update_period": 30, "epsilon_decay_period": 100, "epsilon_train": 0.3}
    agent = small_agent(**settings)
    play(agent, 200)
    bundle = agent.bundle_and_checkpoint(str(tmp_path), 0)
    expected = play(agent, 200, seed=1)

    resumed = small_agent(**settings, seed=9)
    assert resumed.unbundle(str(tmp_path), 0, bundle)
    np.testing.assert_array_equal(play(resumed, 200, seed=1), expected)
    for tree in ("online_params", "target_network_params", "optimizer_state"):
        for first, second in zip(
            leaves(getattr(agent, tree)), leaves(getattr(resumed, tree)), strict=True
        ):
            np.testing.assert_array_equal(first, second)
    assert resumed.training_steps == agent.training_steps == 400


def test_a_checkpoint_without_its_replay_memory_is_refused(tmp_path):
    agent = small_agent()
    play(agent, 40)
    bundle = agent.bundle_and_checkpoint(str(tmp_path / "no"), 0)
    assert bundle is None
    bundle = agent.bundle_and_checkpoint(str(tmp_path), 0)
    assert not small_agent().unbundle(str(tmp_path / "empty"), 0, bundle)
    assert small_agent(allow_partial_reload=True).unbundle(str(tmp_path / "empty2"), 0, bundle)


def test_the_values_at_the_start():
    agent = JaxLogDQNAgent(6, seed=0)
    blank = np.zeros(agent.state.shape)
    noise = np.random.default_rng(0).integers(256, size=agent.state.shape)
    for state in (blank, noise):
        outputs = agent.network_def.apply(agent.online_params, state)
        log_qs = agent._update.constants.log_values((outputs.plus, outputs.minus), jax.numpy)
        q_plus, q_minus = np.exp(log_qs)
        np.testing.assert_allclose(q_minus, 0.96**100, rtol=1e-6)
        np.testing.assert_allclose(q_plus, 1.0, rtol=1e-6 if state is blank else 0.5)
    assert np.ptp(q_plus) > 0.01


def test_it_accepts_what_jax_dqn_agent_accepts():
    ours, theirs = (
        inspect.signature(agent.__init__).parameters
        for agent in (JaxLogDQNAgent, dqn_agent.JaxDQNAgent)
    )
    assert set(theirs) <= set(ours)
    changed = {name for name in theirs if ours[name].default != theirs[name].default}
    assert changed == {"gamma", "optimizer", "loss_type"}
    assert ours["network"].default is networks.NatureDQNNetwork
    # The paper's step-size: the first step is 0.0025 g / sqrt(0.95 + 0.05 g^2 - (0.05 g)^2 + eps).
    optimizer = ours["optimizer"].default
    assert isinstance(optimizer, optax.GradientTransformation)
    step, _ = optimizer.update(np.ones(1), optimizer.init(np.zeros(1, np.float32)))
    np.testing.assert_allclose(step, [-0.0025 / np.sqrt(1 - 0.0025 + 1e-5)], rtol=1e-6)


def test_preprocessed_inputs():
    def preprocess(x):
        return np.asarray(x, np.float32) / 2

    class Preprocessed(_Linear):
        inputs_preprocessed: bool = False

    agent = small_agent(network=Preprocessed, preprocess_fn=preprocess)
    assert agent.network_def.network.inputs_preprocessed
    play(agent, 60)
    assert all(np.isfinite(leaf).all() for leaf in leaves(agent.online_params))


class _NoDense(nn.Module):
    num_actions: int

    def __call__(self, x):
        return heads.TwoHeadedOutput(x, None, None)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gamma": 1.0}, "gamma is 1.0; it must be between 0 and 1"),
        ({"k": 0}, "k is 0; it must be a positive number"),
        ({"c": -1}, "c is -1; it must be a positive number"),
        ({"beta_reg": 0}, r"beta_reg is 0; it must be in \(0, 1\]"),
        ({"q_init_plus": -1}, "q_init_plus is -1; it must be 0 or a positive number"),
        ({"update_horizon": 0}, "update_horizon is 0; it must be a whole number, at least 1"),
        ({"loss_type": "l1"}, "loss_type is 'l1'; it must be one of huber, mse"),
        ({"head_init": "x"}, "head_init is 'x'; it must be one of asymmetric, symmetric"),
        ({"observation_shape": 4}, "observation_shape is 4; it must be a tuple of whole numbers"),
        ({"network": "x"}, "network is 'x'; it must be a network class"),
        ({"epsilon_fn": 1}, "epsilon_fn is 1; it must be a schedule"),
        ({"preprocess_fn": 1}, "preprocess_fn is 1; it must be a function, or None"),
        ({"optimizer": "x"}, "optimizer is 'x'; it must be one of 'adam', 'rmsprop', 'sgd', or"),
        ({"network": _NoDense}, "network is _NoDense; its last layer must be a Dense layer"),
    ],
)
def test_a_setting_out_of_range_is_named(settings, message):
    with pytest.raises(ValueError, match=message):
        small_agent(**settings)
