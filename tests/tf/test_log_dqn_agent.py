import math
import pathlib

import gin
import numpy as np
import pytest
import tensorflow as tf
from dopamine.discrete_domains import atari_lib, gym_lib
from tensorflow.python.autograph.pyct import loader

from log_dqn.tf import heads
from log_dqn.tf.log_dqn_agent import LogDQNAgent
from log_dqn.tf.namespace import xp
from tests import reference

NUM_ACTIONS = 3


def small_agent(batch_size=24, num_actions=NUM_ACTIONS, **settings):
    gin.bind_parameter("WrappedReplayBuffer.replay_capacity", 100)
    gin.bind_parameter("WrappedReplayBuffer.batch_size", batch_size)
    return LogDQNAgent(
        None, num_actions, observation_shape=(4, 1), observation_dtype=tf.float32, stack_size=1,
        network=gym_lib.CartpoleDQNNetwork, **settings,
    )  # fmt: skip


def run_update(agent, fetches, tq, next_tq, actions, rewards, terminals):
    """Runs tensors of the train op on a batch of given network outputs, (plus, minus) each."""
    return agent._sess.run(
        fetches,
        {
            **dict(zip(agent._replay_net_outputs, tq, strict=True)),
            **dict(zip(agent._replay_next_target_net_outputs, next_tq, strict=True)),
            agent._replay.actions: actions,
            agent._replay.rewards: rewards,
            agent._replay.terminals: terminals,
        },
    )


@pytest.mark.parametrize(
    ("gamma", "update_horizon", "clips", "loss_type"),
    [
        # Each gamma with each of the rules, which take turns in horizons and losses.
        (gamma, (1, 3)[(i + j) % 2], clips, ("huber", "mse")[(i + j) // 2 % 2])
        for i, gamma in enumerate([0.1, 0.84, 0.99])
        for j, clips in enumerate(
            [
                {"clip_bootstrap": True, "clip_inverse": False},
                {"clip_bootstrap": False, "clip_inverse": True},
                {"clip_inverse": True, "linear_above": 0.3},
            ]
        )
    ],
)
def test_loss_targets_and_gradients_equal_a_plain_derivation(
    gamma, update_horizon, clips, loss_type
):
    batch_size = 24
    agent = small_agent(
        batch_size, gamma=gamma, update_horizon=update_horizon, loss_type=loss_type, **clips
    )
    rule = agent._update.rule
    log_targets = rule.log_targets(
        rule.next_log_values(agent._replay_next_target_net_outputs, xp),
        agent._replay.rewards,
        tf.cast(agent._replay.terminals, tf.bool),
        xp,
    )
    gradients = tf.gradients(agent._mean_loss, list(agent._replay_net_outputs))

    # Values from below the floor gamma^k to above the largest return, in float64 first.
    rng = np.random.default_rng(7)
    plain = reference.PlainUpdate(gamma=gamma, update_horizon=update_horizon, **clips)
    low, high = 100 * math.log(gamma) - 1, math.log(1 / (1 - gamma)) + 1
    offsets = (plain.d(1), plain.d(0))
    tq, next_tq = (
        [
            (plain.c * rng.uniform(low, high, (batch_size, NUM_ACTIONS)) + d).astype(np.float32)
            for d in offsets
        ]
        for _ in range(2)
    )
    actions = rng.integers(NUM_ACTIONS, size=batch_size).astype(np.int32)
    rewards = np.resize([-1, 0, 0.5, 1], batch_size).astype(np.float32)
    terminals = np.repeat([0, 1], batch_size // 2).astype(np.uint8)

    value, (grad_plus, grad_minus), log_u = run_update(
        agent,
        [agent._mean_loss, gradients, log_targets],
        tq, next_tq, actions, rewards, terminals,
    )  # fmt: skip

    expected_loss, loss_rounding = 0.0, 0.0
    for i, action in enumerate(actions):
        chosen = (float(tq[0][i, action]), float(tq[1][i, action]))
        transition = (next_tq[0][i].tolist(), next_tq[1][i].tolist(), rewards[i], terminals[i])
        us = plain.update_targets(*transition)
        ys = plain.targets(chosen, *transition)
        for head, grad in enumerate((grad_plus, grad_minus)):
            # An output of 100 is itself known to 1e-5 only in float32.
            rounding = 1e-6 * (1 + abs(chosen[head]))
            np.testing.assert_allclose(log_u[head][i], math.log(us[head]), rtol=1e-5, atol=2e-5)
            td = ys[head] - chosen[head]
            slope = -2 * td if loss_type == "mse" else -max(-1, min(1, td))
            assert grad[i, action] * batch_size == pytest.approx(slope, rel=1e-5, abs=2 * rounding)
            np.testing.assert_array_equal(np.delete(grad[i], action), 0)
            expected_loss += reference.plain_loss(td, loss_type) / batch_size
            loss_rounding += rounding * (abs(slope) + rounding) / batch_size
    assert value == pytest.approx(expected_loss, rel=1e-5, abs=loss_rounding)


def test_the_values_at_the_start():
    gin.bind_parameter("WrappedReplayBuffer.replay_capacity", 100)
    agent = LogDQNAgent(None, 6)
    log_qs = agent._update.rule.log_values(agent._net_outputs, xp)
    blank = np.zeros(agent.state.shape)
    noise = np.random.default_rng(0).integers(256, size=agent.state.shape)
    for state in (blank, noise):
        q_plus, q_minus = np.exp(agent._sess.run(log_qs, {agent.state_ph: state}))
        np.testing.assert_allclose(q_minus, 0.96**100, rtol=1e-6)
        np.testing.assert_allclose(q_plus, 1.0, rtol=1e-6 if state is blank else 0.5)
    assert np.ptp(q_plus) > 0.01


def kernels(agent):
    output = [w for w in agent.online_convnet.trainable_variables if "kernel" in w.name][-1]
    return np.split(agent._sess.run(output), 2, axis=-1)


def test_head_initialisation():
    num_actions = 18
    plus, minus = kernels(small_agent(num_actions=num_actions))
    assert plus.shape == minus.shape == (512, num_actions)
    # Glorot uniform for one head; for both together it would be 0.983 of that.
    limit = math.sqrt(6 / (512 + num_actions))
    assert 0.995 * limit < np.abs(plus).max() <= limit
    assert plus.std() == pytest.approx(limit / math.sqrt(3), rel=0.1)
    assert (minus == 0).all()

    with tf.Graph().as_default():
        plus, minus = kernels(small_agent(num_actions=num_actions, head_init="symmetric"))
    assert 0.995 * limit < np.abs(minus).max() <= limit
    assert abs(np.corrcoef(plus.ravel(), minus.ravel())[0, 1]) < 0.1


def test_heads_differ_whatever_their_initializer_is():
    for initializer in (tf.keras.initializers.GlorotUniform(seed=3), tf.random.normal):
        initialize = heads._head_initializer(initializer, "symmetric")
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            plus, minus = np.split(session.run(initialize((8, 6), tf.float32)), 2, axis=1)
        assert plus.shape == minus.shape == (8, 3) and (plus != minus).all()


def test_a_network_that_is_built_too_early_is_refused():
    def network(num_actions, name):
        layers = [tf.keras.layers.InputLayer((4,)), tf.keras.layers.Dense(num_actions)]
        return tf.keras.Sequential(layers, name=name)

    with tf.Graph().as_default(), pytest.raises(ValueError, match="whose layers are built when it"):
        heads.create_two_headed_network(network, 2, "asymmetric", "float32", "float32", "Online")


class Holder(tf.Module):
    """Holds layers as Keras's own don't."""

    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def __call__(self, state):
        return self.layers[0](state)


def test_an_output_layer_that_keras_does_not_know_is_found():
    class Network(tf.keras.Model):
        def __init__(self, num_actions, name=None):
            super().__init__(name=name)
            self.held = Holder([tf.keras.layers.Dense(num_actions)])

    with tf.Graph().as_default():
        network = heads.create_two_headed_network(
            Network, 2, "asymmetric", "float32", "float32", "Online"
        )
    assert network.held.layers[0].kernel_initializer.__name__ == "initialize"


@pytest.mark.parametrize("hold", [tf.keras.Sequential, lambda layers: Holder(layers)])
def test_a_hidden_layer_within_another_is_not_taken_for_the_output(hold):
    class Network(tf.keras.Model):
        def __init__(self, num_actions, name=None):
            super().__init__(name=name)
            hidden = tf.keras.layers.Dense(num_actions, activation="relu", name="hidden")
            self.body = hold([hidden])
            self.head = tf.keras.layers.Dense(num_actions, name="output")

        def call(self, state):
            return self.head(self.body(state))

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        network = heads.create_two_headed_network(
            Network, 2, "asymmetric", "float32", "float32", "Online"
        )
        network(tf.zeros((1, 3)))
        session.run(tf.compat.v1.global_variables_initializer())
        hidden, output = session.run([network.body.layers[0].kernel, network.head.kernel])
    assert (hidden != 0).all()
    assert (output[:, :2] != 0).all() and (output[:, 2:] == 0).all()


def test_the_greedy_action_is_that_of_q_plus_less_q_minus():
    agent = small_agent(gamma=0.1)  # gamma^k is 1e-100
    ln10 = math.log(10)
    # ln q of each action; Q is about (1e-90, 1e-60, -1): the second action is greedy.
    ln_q_plus = np.array([[-90 * ln10, -60 * ln10, -80 * ln10]])
    ln_q_minus = np.array([[-95 * ln10, -70 * ln10, 0]])
    plus, minus = (
        (mapping.c * ln_q + mapping.d).astype(np.float32)
        for mapping, ln_q in zip(agent._update.mappings, (ln_q_plus, ln_q_minus), strict=True)
    )
    feed = dict(zip(agent._net_outputs, (plus, minus), strict=True))
    assert agent._sess.run(agent._q_argmax, feed) == 1


def fill_replay(agent, steps=80):
    rng = np.random.default_rng(0)
    agent.begin_episode(rng.normal(size=(4, 1)))
    for step in range(steps):
        agent.step(float(rng.choice([-1, 0, 1])), rng.normal(size=(4, 1)))
        if step % 20 == 19:
            agent.end_episode(0.0)
            agent.begin_episode(rng.normal(size=(4, 1)))


@pytest.mark.parametrize(
    ("dtype", "precision"),
    [("float32", "float32"), ("float64", "float32"), ("float32", "bfloat16")],
)
def test_training_changes_the_online_network_and_syncs_the_target(dtype, precision):
    agent = small_agent(dtype=dtype, precision=precision, min_replay_history=1000)
    fill_replay(agent)
    session = agent._sess
    online, target = (
        net.trainable_variables for net in (agent.online_convnet, agent.target_convnet)
    )
    assert [w.dtype.name for w in online] == ["float32"] * 4 + [dtype] * 2
    before, before_target = session.run([online, target])
    for _ in range(5):
        session.run(agent._train_op)
    after, after_target = session.run([online, target])
    for old, new in zip(before, after, strict=True):
        assert np.isfinite(new).all() and (old != new).any()
    np.testing.assert_equal(before_target, after_target)
    session.run(agent._sync_qt_ops)
    np.testing.assert_equal(after, session.run(target))


def test_summaries(tmp_path):
    agent = small_agent(batch_size=2, summary_writer=str(tmp_path))
    outputs = [np.zeros((2, NUM_ACTIONS))] * 2
    event = tf.compat.v1.Summary.FromString(
        run_update(agent, agent._merged_summaries, outputs, outputs, [1, 1], [1, -1], [0, 1])
    )
    values = {v.tag: v.simple_value for v in event.value}
    # Outputs of 0 stand for 1 and gamma^k; a reward of -1 takes q_- from there up to 1.
    found = [values[f"Values/{name}"] for name in ("QPlus", "QMinus", "LogActionGap")]
    assert found == pytest.approx([1, 0.96**100, 0], rel=1e-4)
    assert 0 < values["Losses/Plus"] < 0.01 < values["Losses/Minus"]


def test_the_online_network_acts():
    """Which network sees which states of a batch, `tests/jax/test_parity.py` tells."""
    agent = small_agent()
    for weight in agent.target_convnet.trainable_variables:
        weight.load(2 * agent._sess.run(weight) + 0.1, agent._sess)
    state = np.random.default_rng(0).normal(size=agent.state.shape)
    found, greedy, both = agent._sess.run(
        [agent._net_outputs, agent._q_argmax, agent.online_convnet(agent.state_ph).q_values],
        {agent.state_ph: state},
    )
    np.testing.assert_array_equal(np.concatenate(found, axis=-1), both)
    plus, minus = np.split(both[0], 2)
    assert greedy == reference.PlainUpdate().q(plus.tolist(), minus.tolist())[1]


class _OfOnes(tf.keras.Model):
    """A convolution and a dense layer without biases, whose weights are all 1 + 2^-10."""

    def __init__(self, num_actions, name=None):
        super().__init__(name=name)
        weights = {"use_bias": False, "kernel_initializer": tf.constant_initializer(1 + 2**-10)}
        self.conv = tf.keras.layers.Conv2D(1, 1, **weights)
        self.flatten = tf.keras.layers.Flatten()
        self.dense = tf.keras.layers.Dense(num_actions, **weights)

    def call(self, state):
        x = self.conv(tf.cast(state, tf.float32))
        return atari_lib.DQNNetworkType(self.dense(self.flatten(x)))


@pytest.mark.parametrize(
    ("settings", "expected"),
    # 1 + 2^-10 is 1 in bfloat16; its square is 1 + 2^-9 + 2^-20. A CPU has no TF32.
    [
        ({}, 1 + 2**-9 + 2**-20),
        ({"precision": "tf32"}, 1 + 2**-9 + 2**-20),
        ({"precision": "bfloat16"}, 1 + 2**-10),
        ({"precision": "bfloat16", "dtype": "float64"}, 1 + 2**-10),
    ],
)
def test_the_torso_alone_is_rounded(settings, expected):
    agent = LogDQNAgent(
        None, NUM_ACTIONS, observation_shape=(1, 1), observation_dtype=tf.float32, stack_size=1,
        network=_OfOnes, head_init="symmetric", **settings,
    )  # fmt: skip
    dtype = settings.get("dtype", "float32")
    for outputs in agent._sess.run(agent._net_outputs, {agent.state_ph: np.ones((1, 1, 1, 1))}):
        assert outputs.dtype == dtype
        np.testing.assert_array_equal(outputs, np.full((1, NUM_ACTIONS), expected, dtype))
    assert [w.dtype.name for w in agent.online_convnet.trainable_variables] == ["float32", dtype]
    in_tf32 = tf.config.experimental.tensor_float_32_execution_enabled()
    assert in_tf32 == (settings.get("precision") == "tf32")


def test_keras_3_is_told_with_what_to_do(monkeypatch):
    monkeypatch.setattr(tf.keras, "Model", object)
    message = r"^tf.keras is Keras 3; it must be Keras 2: import log_dqn first, before anything"
    with pytest.raises(ValueError, match=message):
        LogDQNAgent(None, num_actions=2)


def test_the_code_that_tensorflow_generates_stays_nowhere(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    module, path = loader.load_source("x = 1", True)
    assert module.x == 1 and pathlib.Path(path).parent == tmp_path
    assert list(tmp_path.iterdir()) == []
