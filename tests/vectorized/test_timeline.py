"""When a run acts, stores, learns and syncs: as Dopamine's agent does."""

import functools

import gin
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dopamine.discrete_domains import iteration_statistics, run_experiment
from dopamine.jax.agents.dqn import dqn_agent

from log_dqn.jax import compat  # noqa: F401  (mends Dopamine's replay memory)
from log_dqn.vectorized import agents, replay, runs, timeline

from . import toys

PERIODS = {
    "update_period": 4, "target_update_period": 102, "epsilon_train": 0.02, "epsilon_eval": 0.005,
    "epsilon_decay_period": 2900,
}  # fmt: skip
TRAINING, EVALUATION = 4000, 1000
CAPACITY = 2000


class Runs:
    """Runs without arithmetic."""

    def __init__(self, run_agents, runner):
        slots = replay.num_slots(
            runner.replay_capacity, runner.stack_size, run_agents[0].update_horizon
        )
        self.rules = timeline.create_rules(run_agents, runner, slots)
        self.position = timeline.begin(len(run_agents))
        self._record = []

    def advance(self, rewards, ended):
        """Advances a step; returns the runs that were sure to learn, and the plan."""
        old = self.position
        starting = timeline.starts(self.rules, old, len(self._record))
        due, if_ended = (
            timeline.update(self.rules, old, ended, starting, np) for ended in (np.False_, np.True_)
        )
        outcome = timeline.Outcome(None, np.array(rewards, np.float32), np.array(ended))
        found = timeline.advance(self.rules, old, outcome, starting, np)
        self._record.append(((old, outcome, starting), found))
        self.position, plan = found
        # What is certain before the environment has answered comes true.
        is_sure = due.learns == if_ended.learns
        for ahead, then in zip(due[:4], plan.update[:4], strict=True):
            np.testing.assert_array_equal(ahead[is_sure], then[is_sure])
        return is_sure & due.learns, plan

    def check_the_device(self):
        """Asserts that the device's program does the same at all steps, bit for bit."""
        args, found = jax.tree.map(lambda *steps: np.stack(steps), *self._record)

        @jax.jit
        def advance_all(rules, args):
            # Not vectorized, for other fused operations would round differently.
            return jax.lax.map(lambda step: timeline.advance(rules, *step, xp=jnp), args)

        theirs = advance_all(self.rules, args)
        jax.tree.map(np.testing.assert_array_equal, found, theirs)
        assert [x.dtype for x in found[0]] == [x.dtype for x in args[0]]


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
    runner = agents.RunnerSettings(
        num_iterations=iterations, training_steps=TRAINING, evaluation_steps=EVALUATION,
        replay_capacity=CAPACITY, stack_size=1,
    )  # fmt: skip
    ours = Runs([agent], runner)
    toy = new_toy()
    toy.reset()
    steps, returns, early, late = [], [], 0, 0
    episodes, active = [], False
    while ours.position.iteration[0] < iterations:
        event = {}
        _, reward, ended = toy.step(0) if active else (None, 0.0, False)
        if ended:
            toy.reset()
        (certain,), plan = ours.advance([reward], [ended])
        if plan.episode.ended[0]:
            episodes.append([part[0] for part in plan.episode[1:]])
        if ours.position.iteration[0] > len(returns):
            returns.append(runs.statistics(episodes, 1.0))
            episodes = []
        if plan.update.learns[0]:
            event["learns"] = (int(plan.update.number[0]), int(plan.update.available[0]))
            early += certain
            late += not certain
        if plan.update.syncs[0]:
            event["syncs"] = int(plan.update.number[0])
        active = timeline.plays(ours.position)[0]
        event["epsilon"] = float(plan.choice.epsilon[0])
        if active:
            steps.append(event)
    ours.check_the_device()
    return steps, returns, early, late


# Step 1004, which may have an update, finds just as many transitions as are too few.
@pytest.mark.parametrize(
    ("update_horizon", "iterations", "min_replay_history"),
    [pytest.param(1, 2, 1003, marks=pytest.mark.slow), (3, 1, 1001)],
)
def test_schedule_equals_dopamines(update_horizon, iterations, min_replay_history, monkeypatch):
    settings = (update_horizon, iterations, min_replay_history)
    theirs, their_returns = dopamines_steps(*settings, monkeypatch)
    ours, our_returns, early, late = our_steps(*settings)
    assert len(ours) == len(theirs) > 5000 * iterations
    for our, their in zip(ours, theirs, strict=True):
        assert our["epsilon"] == pytest.approx(their["epsilon"], rel=1e-5)
        assert our.get("syncs") == their.get("syncs")
        assert ("learns" in our) == ("learns" in their)
        if "learns" in our:
            assert our["learns"][0] == their["learns"][0]
            # The transitions that the end of an episode completes are drawn a step later.
            available = min(their["learns"][1], CAPACITY)
            assert 0 <= available - min(our["learns"][1], CAPACITY) <= update_horizon
    assert sum("syncs" in their for their in theirs) > 20 * iterations
    assert pytest.approx(PERIODS["epsilon_train"]) in [their["epsilon"] for their in theirs]
    for our, their in zip(our_returns, their_returns, strict=True):
        for phase in ("train", "eval"):
            for name in (f"{phase}_episode_returns", f"{phase}_episode_lengths"):
                assert our[name] == their[name]
    # Nearly all updates may run while the environment steps.
    assert early > 700 * iterations
    assert 0 < late < 100


def test_runs_learn_at_the_same_steps():
    """One call updates all runs, though their iterations end at different steps."""
    run_agents = [toys.log_dqn(min_replay_history=8)] * 3
    runner = agents.RunnerSettings(
        num_iterations=20, training_steps=40, evaluation_steps=10, replay_capacity=100, stack_size=1
    )
    three = Runs(run_agents, runner)
    rng = np.random.default_rng(0)
    alone = 0
    for step in range(1000):
        waiting = three.position.phase == timeline.Phase.WAITING
        _, plan = three.advance(np.zeros(3), rng.random(3) < 0.2)
        assert not (plan.episode.ended & waiting).any()
        training, learns = three.position.phase == timeline.Phase.TRAINING, plan.update.learns
        if step > 20 and learns.any():
            np.testing.assert_array_equal(learns, training)
            alone += training.sum() < 3
    three.check_the_device()
    assert alone > 20
    assert (three.position.iteration > 10).all()


@pytest.mark.parametrize(
    ("phase", "ended", "available", "oldest", "learns", "slots", "age", "terminal"),
    [
        # The 26th step is stored in slot 25 % 11. The transitions of its episode's two steps lack
        # their end; of the 24 others 7 are kept, from step 17 on, in slot 17 % 11.
        (timeline.Phase.TRAINING, False, 7, 6, True, (3, 4), 1, False),
        (timeline.Phase.TRAINING, True, 7, 6, True, (3, 4), 0, True),
        # An evaluation stores nothing, in slot 11, and all 25 transitions are whole.
        (timeline.Phase.EVALUATION, True, 7, 7, False, (11, 11), 0, False),
    ],
)
def test_a_step_worked_by_hand(phase, ended, available, oldest, learns, slots, age, terminal):
    agent = toys.log_dqn(update_horizon=3, min_replay_history=20, update_period=4)
    runner = agents.RunnerSettings(replay_capacity=7, stack_size=2)
    one = Runs([agent], runner)
    assert (one.rules.epsilon_eval.dtype, one.rules.slots.dtype) == (np.float32, np.int32)
    one.position = timeline.begin(1)._replace(
        phase=np.array([phase]), stored=np.array([25]), training_steps=np.array([24]),
        chosen=np.array([30]), episode_steps=np.array([1]),
        episode_return=np.float32([2.5]),
    )  # fmt: skip
    _, (episode, update, choice) = one.advance([1.0], [ended])
    assert (update.available, update.oldest) == (available, oldest)
    assert (update.number, update.learns) == (24, learns)
    assert (choice.result_slot, choice.slot) == slots
    assert (choice.number, choice.age, choice.terminal) == (30, age, terminal)
    assert (episode.ended, episode.value, episode.length) == (ended, 3.5, 2)


def test_nothing_is_learned_from_an_empty_memory():
    agent = toys.log_dqn(min_replay_history=0, update_period=1)
    one = Runs([agent], agents.RunnerSettings(stack_size=1, replay_capacity=18))
    learned = []
    # The first episode is a single step; its transition can be drawn a step later.
    for ended in (False, True, False, False):
        (certain,), plan = one.advance([0.0], [ended])
        (learns,), (available,) = plan.update.learns, plan.update.available
        learned.append((bool(certain), bool(learns), int(available) if learns else None))
    one.check_the_device()
    assert learned == [(False, False, None), (False, False, None), (True, True, 1), (True, True, 2)]


def test_which_numbers_are_finite():
    position = timeline.begin(4)._replace(phase=np.array([1, 1, 2, 0]))
    rewards = np.array([np.nan, 1, np.inf, np.nan], np.float32)
    frames = np.zeros((4, 2, 3), np.float32)
    outcome = timeline.Outcome(frames, rewards, np.zeros(4, bool))
    starting = np.zeros(4, bool)
    for xp in (np, jax.numpy):
        faults = functools.partial(timeline.faults, position, xp=xp)
        assert faults(outcome, starting).tolist() == [True, False, True, False]
        # A reward before the start isn't the run's.
        assert faults(outcome, ~starting).tolist() == [True, False, True, False]
        bad = outcome._replace(frame=frames.copy())
        bad.frame[1, 1, 2] = -np.inf
        assert faults(bad, starting).tolist() == [True, True, True, False]
        bad.frame[3] = np.nan
        assert faults(bad, starting)[3] == 0 and faults(bad, ~starting)[3] == 1
        assert not faults(bad._replace(frame=frames > 0), starting)[1]
