import dataclasses
import inspect
import math

import gin
import jax
import numpy as np
import optax
import pytest
from dopamine.jax import networks
from dopamine.jax.agents.dqn import dqn_agent
from flax import linen as nn

from log_dqn.jax import heads
from log_dqn.jax.log_dqn_agent import JaxLogDQNAgent
from tests import reference

NUM_ACTIONS = 3


@pytest.fixture(autouse=True)
def small_replay_memory():
    gin.parse_config("ReplayBuffer.max_capacity = 100\nReplayBuffer.batch_size = 8")


class _Linear(nn.Module):
    """A network that compiles quickly."""

    num_actions: int

    @nn.compact
    def __call__(self, x):
        x = nn.Dense(self.num_actions)(x.astype(np.float32).reshape(-1))
        return heads.TwoHeadedOutput(x, None, None)


def small_agent(agent_class=JaxLogDQNAgent, num_actions=NUM_ACTIONS, **settings):
    defaults = {
        "observation_shape": (4, 1), "stack_size": 1, "network": _Linear, "min_replay_history": 20,
        "seed": 0,
    }  # fmt: skip
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
    np.testing.assert_equal(leaves(agent.target_network_params), trained)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            # At multiples of 12 both are due: first the update, then the sync.
            {"update_period": 4, "target_update_period": 6},
            [
                (24, "train"), (24, "sync"), (28, "train"), (30, "sync"), (32, "train"),
                (36, "train"), (36, "sync"), (40, "train"), (42, "sync"), (44, "train"),
            ],
        ),
        (
            # A one-step transition is stored a step late, so before step 38 there are more than
            # 36, one of them the last of an episode, for which it is not late.
            {"update_period": 1, "target_update_period": 39, "min_replay_history": 36},
            [(step, "train") for step in range(38, 40)]
            + [(39, "sync")]
            + [(step, "train") for step in range(40, 46)],
        ),
    ],
)  # fmt: skip
def test_the_schedule_is_dopamines(monkeypatch, settings, expected):
    def events(agent):
        happened = []
        sync = agent._sync_weights

        def note_sync():
            happened.append((agent.training_steps, "sync"))
            sync()

        def note_train(*args):
            happened.append((agent.training_steps, "train"))
            return train(*args)

        monkeypatch.setattr(agent, "_sync_weights", note_sync)
        if isinstance(agent, JaxLogDQNAgent):
            train = agent._train
            monkeypatch.setattr(agent, "_train", note_train)
        else:
            train = dqn_agent.train
            monkeypatch.setattr(dqn_agent, "train", note_train)
        play(agent, 46)
        return happened

    happened = events(small_agent(**settings))
    assert happened == expected
    assert happened == events(small_agent(dqn_agent.JaxDQNAgent, **settings))


@pytest.mark.parametrize("linear_above", [math.inf, 0.3])
@pytest.mark.parametrize("loss_type", ["huber", "mse"])
def test_an_update_from_the_replay_memory(loss_type, linear_above):
    # The network is linear, so its gradients follow by hand from the reference's targets.
    rule = {
        "gamma": 0.5, "k": 3, "c": 0.8, "beta_reg": 0.3, "update_horizon": 3,
        "clip_bootstrap": False, "clip_inverse": True, "linear_above": linear_above,
    }  # fmt: skip

    class Preprocessed(_Linear):
        inputs_preprocessed: bool = False

    agent = small_agent(
        **rule,
        network=Preprocessed,
        preprocess_fn=lambda x: np.asarray(x, np.float32) / 2,
        head_init="symmetric",
        # Weight decay needs the weights as well.
        optimizer=optax.chain(optax.add_decayed_weights(0.01), optax.sgd(0.1)),
        loss_type=loss_type,
        min_replay_history=1000,
    )
    play(agent, 90)
    agent.target_network_params = jax.tree.map(lambda x: 3 * x + 0.3, agent.online_params)
    online, target = (
        {name: np.asarray(leaf, np.float64) for name, leaf in tree["params"]["Dense_0"].items()}
        for tree in (agent.online_params, agent.target_network_params)
    )
    agent._train_from_replay()

    plain = reference.PlainUpdate(**rule)
    batch = agent.replay_elements
    expected = {name: 0.01 * leaf for name, leaf in online.items()}
    for i in range(8):
        x, next_x = (batch[name][i].reshape(-1) / 2 for name in ("state", "next_state"))
        next_tq = next_x @ target["kernel"] + target["bias"]
        for head in (0, 1):
            chosen = NUM_ACTIONS * head + batch["action"][i]
            tq = x @ online["kernel"] + online["bias"]
            y = plain.targets(
                tq.reshape(2, -1)[:, batch["action"][i]],
                *next_tq.reshape(2, -1),
                batch["reward"][i],
                bool(batch["terminal"][i]),
            )[head]
            slope = tq[chosen] - y
            slope = 2 * slope if loss_type == "mse" else np.clip(slope, -1, 1)
            expected["kernel"][:, chosen] += slope / 8 * x
            expected["bias"][chosen] += slope / 8
    for name, leaf in agent.online_params["params"]["Dense_0"].items():
        np.testing.assert_allclose(leaf, online[name] - 0.1 * expected[name], rtol=1e-5, atol=1e-6)


def test_its_settings_reach_update_and_network():
    settings = {
        "gamma": 0.5, "k": 3.0, "c": 0.8, "beta_reg": 0.3, "update_horizon": 3,
        "q_init_plus": 0.5, "q_init_minus": 0.25, "clip_bootstrap": False, "clip_inverse": True,
        "linear_above": 2.0,
    }  # fmt: skip
    agent = small_agent(**settings, head_init="symmetric")
    assert dataclasses.asdict(agent._update) == settings
    assert agent.network_def.update == agent._update
    assert agent.network_def.head_init == "symmetric"


def test_dopamines_settings_reach_dopamine():
    class Preprocessed(_Linear):
        inputs_preprocessed: bool = False

    settings = {
        "observation_shape": (2, 3), "observation_dtype": np.int32, "stack_size": 2,
        "network": Preprocessed, "gamma": 0.5, "update_horizon": 3, "min_replay_history": 7,
        "update_period": 3, "target_update_period": 11, "epsilon_fn": dqn_agent.identity_epsilon,
        "epsilon_train": 0.3, "epsilon_eval": 0.2, "epsilon_decay_period": 17, "eval_mode": True,
        "optimizer": optax.sgd(0.5), "summary_writer": object(), "summary_writing_frequency": 13,
        "allow_partial_reload": True, "seed": 5, "loss_type": "mse",
        "preprocess_fn": lambda x: x * 1.0, "collector_allowlist": ("pickle",),
    }  # fmt: skip
    assert set(settings) == set(inspect.signature(dqn_agent.JaxDQNAgent).parameters) - {
        "num_actions"
    }
    ours, theirs = (
        agent(NUM_ACTIONS, **settings) for agent in (JaxLogDQNAgent, dqn_agent.JaxDQNAgent)
    )
    # All but what they consist of.
    parts = {"network_def", "online_params", "target_network_params", "optimizer_state", "_replay"}
    for name, value in vars(theirs).items():
        if name not in parts:
            np.testing.assert_array_equal(vars(ours)[name], value, err_msg=name)
    for replay in (ours._replay, theirs._replay):
        accumulate = replay._transition_accumulator
        assert (accumulate._stack_size, accumulate._update_horizon, accumulate._gamma) == (
            2,
            3,
            0.5,
        )


def test_training_statistics_reach_the_collectors(tmp_path):
    class Collector:
        def __init__(self):
            self.written = []

        def write(self, statistics, collector_allowlist):
            assert collector_allowlist == ("pickle",)
            self.written += [(item.name, item.step, float(item.value)) for item in statistics]

    agent = small_agent(
        summary_writer=str(tmp_path), summary_writing_frequency=20, collector_allowlist=("pickle",)
    )
    collector = Collector()
    agent.set_collector_dispatcher(collector)
    play(agent, 65)
    tags = [
        "Losses/Plus", "Losses/Minus", "Values/QPlus", "Values/QMinus", "Values/Clipped",
        "Values/LogActionGap",
    ]  # fmt: skip
    assert sorted(item[:2] for item in collector.written) == sorted(
        (tag, step) for step in (40, 60) for tag in tags
    )
    assert all(value >= 0 for _, _, value in collector.written)


def test_a_game_with_one_action(tmp_path):
    agent = small_agent(num_actions=1, summary_writer=str(tmp_path), summary_writing_frequency=4)
    start = leaves(agent.online_params)
    assert set(play(agent, 40)) == {0}
    for old, new in zip(start, leaves(agent.online_params), strict=True):
        assert np.isfinite(new).all() and (old != new).any()


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
        log_qs = agent._update.rule.log_values((outputs.plus, outputs.minus), jax.numpy)
        q_plus, q_minus = np.exp(log_qs)
        np.testing.assert_allclose(q_minus, 0.96**100, rtol=1e-6)
        np.testing.assert_allclose(q_plus, 1.0, rtol=1e-6 if state is blank else 0.5)
    assert np.ptp(q_plus) > 0.01


def test_it_accepts_what_jax_dqn_agent_accepts():
    ours, theirs = (
        inspect.signature(agent.__init__).parameters
        for agent in (JaxLogDQNAgent, dqn_agent.JaxDQNAgent)
    )
    assert list(ours)[: len(theirs)] == list(theirs)  # also by position
    changed = {name for name in theirs if ours[name].default != theirs[name].default}
    assert changed == {"gamma", "optimizer", "loss_type"}
    assert ours["network"].default is networks.NatureDQNNetwork
    own = {name for name in ours if name == "gamma" or name not in theirs}
    assert {name: ours[name].default for name in own} == {
        "gamma": 0.96, "k": 100, "c": 0.5, "beta_reg": 0.1, "q_init_plus": 1, "q_init_minus": 0,
        "clip_bootstrap": True, "clip_inverse": False, "linear_above": math.inf,
        "head_init": "asymmetric",
            "precision": "float32",
    }  # fmt: skip
    assert ours["loss_type"].default == "huber"
    # The paper's step-size: the first step is 0.0025 g / sqrt(0.95 + 0.05 g^2 - (0.05 g)^2 + eps).
    optimizer = ours["optimizer"].default
    assert isinstance(optimizer, optax.GradientTransformation)
    step, _ = optimizer.update(np.ones(1), optimizer.init(np.zeros(1, np.float32)))
    np.testing.assert_allclose(step, [-0.0025 / np.sqrt(1 - 0.0025 + 1e-5)], rtol=1e-6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gamma": 1.0}, "gamma is 1.0; it must be a number between 0 and 1"),
        ({"loss_type": "l1"}, "loss_type is 'l1'; it must be one of huber, mse"),
        ({"head_init": "x"}, "head_init is 'x'; it must be one of asymmetric, symmetric"),
        ({"precision": "x"}, "precision is 'x'; it must be one of float32, tf32, bfloat16"),
        ({"observation_shape": 4}, "observation_shape is 4; it must be a tuple of whole numbers"),
        ({"network": "x"}, "network is 'x'; it must be a network class"),
        ({"epsilon_fn": 1}, "epsilon_fn is 1; it must be a schedule"),
        ({"preprocess_fn": 1}, "preprocess_fn is 1; it must be a function, or None"),
        ({"optimizer": "x"}, "optimizer is 'x'; it must be one of 'adam', 'rmsprop', 'sgd', or"),
    ],
)
def test_a_setting_out_of_range_is_named(settings, message):
    with pytest.raises(ValueError, match=message):
        small_agent(**settings)
