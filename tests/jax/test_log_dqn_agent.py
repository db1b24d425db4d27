import dataclasses
import math

import gin
import jax
import numpy as np
import optax
import pytest
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


@pytest.mark.parametrize(
    "settings",
    [
        # At multiples of 12 both are due: first the update, then the sync.
        {"update_period": 4, "target_update_period": 6},
        # A one-step transition is stored a step late, so before step 38 there are more than 36, one
        # of them the last of an episode, for which it is not late.
        {"update_period": 1, "target_update_period": 39, "min_replay_history": 36},
    ],
)
def test_the_schedule_is_dopamines(monkeypatch, settings):
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
    assert {name for _, name in happened} == {"train", "sync"} and len(happened) >= 9
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
    of_dopamine = {name: value for name, value in bundle.items() if name != "rng"}
    assert small_agent().unbundle(str(tmp_path), 0, of_dopamine)
    np.testing.assert_array_equal(play(resumed, 200, seed=1), expected)
    for tree in ("online_params", "target_network_params", "optimizer_state"):
        for first, second in zip(
            leaves(getattr(agent, tree)), leaves(getattr(resumed, tree)), strict=True
        ):
            np.testing.assert_array_equal(first, second)
    assert resumed.training_steps == agent.training_steps == 400


def test_terminals_may_be_floats(monkeypatch):
    agent = small_agent()
    play(agent, 40)
    sample = agent._sample_from_replay_buffer

    def in_floats():
        sample()
        agent.replay_elements["terminal"] = agent.replay_elements["terminal"].astype(np.float32)

    monkeypatch.setattr(agent, "_sample_from_replay_buffer", in_floats)
    before = leaves(agent.online_params)
    agent._train_from_replay()
    pairs = zip(before, leaves(agent.online_params), strict=True)
    assert any((one != other).any() for one, other in pairs)


def test_a_checkpoint_without_its_replay_memory_is_refused(tmp_path):
    agent = small_agent()
    play(agent, 40)
    bundle = agent.bundle_and_checkpoint(str(tmp_path / "no"), 0)
    assert bundle is None
    bundle = agent.bundle_and_checkpoint(str(tmp_path), 0)
    assert not small_agent().unbundle(str(tmp_path / "empty"), 0, bundle)
    assert small_agent(allow_partial_reload=True).unbundle(str(tmp_path / "empty2"), 0, bundle)
