"""When a run acts, stores, learns and syncs: as Dopamine's agent does."""

import gin
import numpy as np
import pytest
from dopamine.discrete_domains import iteration_statistics, run_experiment
from dopamine.jax.agents.dqn import dqn_agent

from log_dqn.jax import compat  # noqa: F401  (mends Dopamine's replay memory)
from log_dqn.vectorized import agents, replay, schedule
from log_dqn.vectorized.timeline import Phase

from . import toys

PERIODS = {
    "update_period": 4,
    "target_update_period": 402,
    "epsilon_train": 0.02,
    "epsilon_eval": 0.005,
    "epsilon_decay_period": 9000,
}
TRAINING, EVALUATION = 10000, 3000
CAPACITY = 5000


class Environment:
    """A toy with the interface of Dopamine's environments."""

    def __init__(self, toy):
        self.toy = toy
        self.game_over = False

    def reset(self):
        self.game_over = False
        return self.toy.reset()

    def step(self, action):
        frame, reward, self.game_over = self.toy.step(action)
        return frame, reward, self.game_over, {}


def new_toy():
    return toys.Noise(5, shape=(2,), lengths=(1, 60))


def dopamines_steps(update_horizon, iterations, min_replay_history, monkeypatch):
    """Runs Dopamine's agent and runner, without arithmetic; returns what happened at each step."""
    steps = []

    def select_action(*args):
        *_, rng, _, eval_mode, epsilon_eval, epsilon_train = args[:8]
        decay_period, training_steps, min_history, epsilon_fn = args[8:]
        epsilon = epsilon_eval if eval_mode else epsilon_fn(
            decay_period, training_steps, min_history, epsilon_train
        )  # fmt: skip
        steps.append({**event, "epsilon": float(epsilon)})
        event.clear()
        return rng, np.int32(0)

    class Agent(dqn_agent.JaxDQNAgent):
        def _build_networks_and_optimizer(self):
            self.network_def = self.online_params = self.target_network_params = None
            self.optimizer = self.optimizer_state = None

        def _sample_from_replay_buffer(self):
            event["learns"] = (self.training_steps, self._replay.add_count)
            self.replay_elements = dict.fromkeys(
                ("state", "action", "next_state", "reward", "terminal")
            )

        def _sync_weights(self):
            event["syncs"] = self.training_steps

    event = {}
    monkeypatch.setattr(dqn_agent, "select_action", select_action)
    monkeypatch.setattr(dqn_agent, "train", lambda *args: (None, None, 0.0))
    gin.parse_config(f"ReplayBuffer.max_capacity = {CAPACITY}\nReplayBuffer.batch_size = 32")
    agent = Agent(
        4, observation_shape=(2,), stack_size=1, update_horizon=update_horizon, seed=1,
        min_replay_history=min_replay_history, **PERIODS,
    )  # fmt: skip
    runner = object.__new__(run_experiment.Runner)
    runner._agent, runner._environment = agent, Environment(new_toy())
    runner._max_steps_per_episode, runner._clip_rewards = 10**6, True
    runner._fine_grained_print_to_console_enabled = False
    runner._training_steps, runner._evaluation_steps = TRAINING, EVALUATION
    returns = []
    for _ in range(iterations):
        statistics = iteration_statistics.IterationStatistics()
        runner._run_train_phase(statistics)
        runner._run_eval_phase(statistics)
        returns.append(statistics.data_lists)
    return steps, returns


def our_steps(update_horizon, iterations, min_replay_history):
    agent = agents.VectorizedDQNAgent(
        update_horizon=update_horizon, min_replay_history=min_replay_history, **PERIODS
    )
    runner = schedule.RunnerSettings(
        num_iterations=iterations,
        training_steps=TRAINING,
        evaluation_steps=EVALUATION,
        replay_capacity=CAPACITY,
        stack_size=1,
    )
    plan = schedule.Schedule([agent], runner, replay.num_slots(CAPACITY, 1, update_horizon))
    toy = new_toy()
    toy.reset()
    steps, returns, early, late = [], [], 0, 0
    one = np.ones(1, bool)
    step, active = 0, False
    while not plan.finished:
        event = {}
        number = plan.place.training_steps.copy()
        certain = plan.certain_updates()
        _, reward, ended = toy.step(0) if active else (None, 0.0, False)
        if ended:
            toy.reset()
        if plan.record(np.array([reward]), np.array([ended])):
            returns.append(plan.iterations[0])
        plan.start(step)
        learns, syncs = plan.train()
        # What is certain before the environment has answered comes true.
        assert not (certain & ~learns).any()
        if learns[0]:
            event["learns"] = (int(number[0]), int(plan.draws(one, number).available[0]))
            early += certain[0]
            late += not certain[0]
        if syncs[0]:
            event["syncs"] = int(number[0])
        active = plan.place.phase[0] in (Phase.TRAINING, Phase.EVALUATION)
        event["epsilon"] = float(plan.epsilons()[0])
        plan.steps()
        if active:
            steps.append(event)
        step += 1
    return steps, returns, early, late


# Step 1004, which may have an update, finds just as many transitions as are too few.
@pytest.mark.parametrize(
    ("update_horizon", "iterations", "min_replay_history"), [(1, 2, 1003), (3, 1, 1001)]
)
def test_schedule_equals_dopamines(update_horizon, iterations, min_replay_history, monkeypatch):
    settings = (update_horizon, iterations, min_replay_history)
    theirs, their_returns = dopamines_steps(*settings, monkeypatch)
    ours, our_returns, early, late = our_steps(*settings)
    assert len(ours) == len(theirs) > 13000 * iterations
    for our, their in zip(ours, theirs, strict=True):
        assert our["epsilon"] == pytest.approx(their["epsilon"], rel=1e-6)
        assert our.get("syncs") == their.get("syncs")
        assert ("learns" in our) == ("learns" in their)
        if "learns" in our:
            assert our["learns"][0] == their["learns"][0]
            # The transitions that the end of an episode completes are drawn a step later.
            available = min(their["learns"][1], CAPACITY)
            assert 0 <= available - min(our["learns"][1], CAPACITY) <= update_horizon
    assert sum("syncs" in their for their in theirs) > 20 * iterations
    for our, their in zip(our_returns, their_returns, strict=True):
        for name, phase in (("train", Phase.TRAINING), ("eval", Phase.EVALUATION)):
            assert our.returns[phase] == their[f"{name}_episode_returns"]
            assert our.lengths[phase] == their[f"{name}_episode_lengths"]
    # Nearly all updates may run while the environment steps.
    assert early > 2200 * iterations
    assert 0 < late < 100


def test_runs_learn_at_the_same_steps():
    """One call updates all runs, though their iterations end at different steps."""
    run_agents = [toys.log_dqn(min_replay_history=8)] * 3
    runner = schedule.RunnerSettings(
        num_iterations=20, training_steps=40, evaluation_steps=10, replay_capacity=100, stack_size=1
    )
    plan = schedule.Schedule(run_agents, runner, replay.num_slots(100, 1, 1))
    rng = np.random.default_rng(0)
    alone = 0
    for step in range(1000):
        certain = plan.certain_updates()
        plan.record(np.zeros(3), rng.random(3) < 0.2)
        plan.start(step)
        training = plan.place.phase == Phase.TRAINING
        learns, _ = plan.train()
        assert not (certain & ~learns).any()
        plan.steps()
        if step > 20 and learns.any():
            np.testing.assert_array_equal(learns, training)
            alone += training.sum() < 3
    assert alone > 20
    assert (plan.place.iteration > 10).all()


def test_nothing_is_learned_from_an_empty_memory():
    agent = toys.log_dqn(min_replay_history=0, update_period=1)
    plan = schedule.Schedule([agent], schedule.RunnerSettings(stack_size=1), 20)
    learned = []
    # The first episode is a single step; its transition can be drawn a step later.
    for step, ended in enumerate((False, True, False, False)):
        certain = plan.certain_updates()
        plan.record(np.zeros(1), np.array([ended]))
        plan.start(step)
        learns, _ = plan.train()
        available = int(plan.draws(learns, plan.place.training_steps).available[0])
        plan.steps()
        learned.append((bool(certain[0]), bool(learns[0]), available if learns[0] else None))
    assert learned == [(False, False, None), (False, False, None), (True, True, 1), (True, True, 2)]
