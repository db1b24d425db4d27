"""Environments of gymnasium: observations, time limits, and training on them."""

import collections
import itertools
import re

import gymnasium
import jax
import numpy as np
import pytest

from log_dqn.dopamine_run import gymnasium_game, runner, seeding, start
from log_dqn.jax.log_dqn_agent import JaxLogDQNAgent
from log_dqn.tf import time_limit
from log_dqn.tf.log_dqn_agent import LogDQNAgent
from tests.cli import faulty_environment
from tests.cli.faulty_environment import register
from tests.dopamine_run.own_environment import TIME_LIMIT
from tests.programs import assert_refused, class_of, read_log, run

BINDING = "--gin_bindings=create_gymnasium_environment."
OWN = "tests.dopamine_run.own_environment:Own/"


def create(environment_id, **settings):
    return gymnasium_game.create_environment(environment_id, seed=0, **settings)


@pytest.mark.parametrize("settings", [0, [], ""])
def test_settings_are_a_dict_or_none(settings):
    with pytest.raises(ValueError, match=re.escape(f"settings is {settings!r}; it must be a dict")):
        create("CartPole-v1", settings=settings)


def test_bounded_components_of_a_vector_are_scaled():
    game = create("MountainCar-v0")
    # Position from -1.2 to 0.6, speed from -0.07 to 0.07.
    position, speed = game.environment.unwrapped.state
    observation = game.environment.observation(np.array([position, speed]))
    np.testing.assert_allclose(observation, [(position + 0.3) / 0.9, speed / 0.07], rtol=1e-6)
    assert (observation.dtype, game.observation_space.dtype) == (np.float32, np.float32)
    # Of CartPole's four, two have no bounds.
    game = create("CartPole-v1")
    state = np.array([2.4, 3.0, 0.1, -7.0], np.float32)
    scaled = game.environment.observation(state)
    high = gymnasium.make("CartPole-v1").observation_space.high
    np.testing.assert_allclose(scaled, [2.4 / high[0], 3.0, 0.1 / high[2], -7.0], rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "shape", "dtype"),
    [
        ("Vector", (2,), np.float32), ("Picture", (84, 84), np.uint8), ("Grey", (84, 84), np.uint8),
        ("Bits", (48 * 40,), np.float32), ("Board", (32,), np.float32),
        ("Number", (16,), np.float32), ("Dictionary", (5,), np.float32),
    ],
)  # fmt: skip
def test_observations(name, shape, dtype):
    game = create(f"{OWN}{name}-v0")
    for observation in (game.reset(), game.step(0)[0]):
        assert (observation.shape, observation.dtype) == (shape, dtype)
    assert (game.observation_space.shape, game.observation_space.dtype) == (shape, dtype)


def test_a_number_becomes_one_of_many():
    observation = create(f"{OWN}Number-v0").reset()
    assert sorted(observation) == [-1] * 15 + [1]


@pytest.mark.parametrize(
    ("bootstrap", "ends_after", "last"),
    [(True, None, False), (False, None, True), (True, TIME_LIMIT, True), (True, 3, True)],
)
def test_the_last_step_of_an_episode(bootstrap, ends_after, last):
    game = create(
        f"{OWN}Vector-v0", bootstrap_at_time_limit=bootstrap, settings={"ends_after": ends_after}
    )
    game.reset()
    steps = 0
    while not game.game_over:
        _, reward, is_terminal, _ = game.step(1)
        steps += 1
        assert (reward, is_terminal) == (1.0, game.game_over and last)
    assert steps == (ends_after or TIME_LIMIT)
    game.reset()
    game.step(0)
    assert not game.game_over


def test_the_seed_decides_what_happens():
    first, again, other = (
        gymnasium_game.create_environment("CartPole-v1", seed=seed).step(0)[0] for seed in (1, 1, 2)
    )
    assert (first == again).all() and (first != other).any()


def frames_of(game):
    """Emulator frames after each of some steps of an episode."""
    game.reset()
    return [game.step(0)[3]["episode_frame_number"] for _ in range(30)]


def test_random_frame_skips_are_restored_exactly():
    game, resumed = (create("ale_py:Pong-v4") for _ in range(2))
    seeding.seed_environment(game, 1)
    frames_of(game)
    state = seeding.random_state(game)
    expected = frames_of(game)
    seeding.restore_random_state(resumed, state)
    assert frames_of(resumed) == expected
    # Skips are 2, 3 or 4 frames.
    assert {*np.diff(expected)} >= {2, 3, 4}


@pytest.mark.parametrize("horizon", [1, 3])
def test_no_transition_of_tensorflow_needs_what_a_time_limit_cut_off(horizon):
    agent = LogDQNAgent(None, num_actions=2, update_horizon=horizon)
    memory = agent._replay.memory
    lengths = (4, 6, 5)
    for length, cut_off in zip(lengths, (True, False, True), strict=True):
        agent.begin_episode(np.full((84, 84), 1, np.uint8))
        for step in range(2, length + 1):
            agent.step(1, np.full((84, 84), step, np.uint8))
        if cut_off:
            time_limit.end_episode(agent, 1)
        else:
            agent.end_episode(1)
    agent.begin_episode(np.zeros((84, 84), np.uint8))
    for _ in range(horizon + 1):
        agent.step(0, np.zeros((84, 84), np.uint8))
    valid = [i for i in range(int(memory.add_count)) if memory.is_valid_transition(i)]
    # Three zeros before each episode, as a state has four frames.
    starts = np.cumsum([3, lengths[0] + 3, lengths[1] + 3, lengths[2] + 3])
    expected = [
        *range(starts[0], starts[0] + lengths[0] - horizon),
        *range(starts[1], starts[1] + lengths[1]),
        *range(starts[2], starts[2] + lengths[2] - horizon),
        starts[3],
    ]
    assert [i for i in valid if i <= starts[3]] == expected
    indices = [starts[0], starts[1] + lengths[1] - 1]
    batch = memory.sample_transition_batch(2, indices)
    assert batch[6].tolist() == [False, True]
    # An episode's first state has no frame of the one before.
    np.testing.assert_array_equal(batch[0][1][0, 0], [3, 4, 5, 6])
    state = memory.sample_transition_batch(1, [starts[2]])[0][0]
    np.testing.assert_array_equal(state[0, 0], [0, 0, 0, 1])


def test_evaluation_stores_nothing():
    agent = LogDQNAgent(None, num_actions=2)
    agent.eval_mode = True
    agent.begin_episode(np.zeros((84, 84), np.uint8))
    time_limit.end_episode(agent, 1)
    assert agent._replay.memory.add_count == 0


def tiny(agent):
    """Some steps, with an update and a sync among them."""
    agent_class = class_of(agent)
    memory = "ReplayBuffer" if "jax" in agent else "WrappedReplayBuffer"
    bindings = {
        "Runner.num_iterations": 2, "Runner.training_steps": 40, "Runner.evaluation_steps": 10,
        f"{agent_class}.min_replay_history": 20, f"{agent_class}.target_update_period": 16,
        f"{memory}.batch_size": 4,
    }  # fmt: skip
    return ["--seed=1", *(f"--gin_bindings={name}={value}" for name, value in bindings.items())]


AGENTS = ("log_dqn", "jax_log_dqn")
# The environment's own limit, or a shorter one of the runner.
LIMITS = [
    *itertools.product(AGENTS, (TIME_LIMIT, 3), (True, False)),
    *(
        pytest.param(agent, TIME_LIMIT, True, marks=pytest.mark.slow)
        for agent in ("dqn", "jax_dqn")
    ),
]


def terminals(agent):
    """How many of the transitions that an agent has stored are terminal, and how many are not."""
    memory = agent._replay
    if hasattr(memory, "memory"):
        stored = memory.memory._store["terminal"][: int(memory.memory.add_count)]
    else:
        stored = [element.is_terminal for element in memory._memory.values()]
    return collections.Counter(map(bool, stored))


@pytest.mark.parametrize(("agent", "length", "bootstrap"), LIMITS)
def test_agents_train_with_either_time_limit(tmp_path, monkeypatch, agent, length, bootstrap):
    runners = []
    create_runner = start.create_runner
    monkeypatch.setattr(
        start, "create_runner", lambda *a: runners.append(create_runner(*a)) or runners[0]
    )
    limits = [
        f"--gin_bindings=create_gymnasium_environment.bootstrap_at_time_limit={bootstrap}",
        *([f"--gin_bindings=Runner.max_steps_per_episode={length}"] if length < TIME_LIMIT else []),
    ]
    assert run(tmp_path, f"--agent={agent}", f"--env={OWN}Vector-v0", *tiny(agent), *limits) == 0
    # As many episodes as 40 steps need, in each of two iterations.
    count = {TIME_LIMIT: 8, 3: 14}[length]
    for statistics in read_log(tmp_path, 1).values():
        assert statistics["train_episode_lengths"] == [length] * count
        assert statistics["train_episode_returns"] == [length] * count
    # JAX's memory has no transition for the step that is cut off.
    episodes, steps = 2 * count, 2 * count * length
    ended = 0 if bootstrap else episodes
    kept = steps - episodes if bootstrap and "jax" in agent else steps
    assert terminals(runners[0]._agent) == collections.Counter({True: ended, False: kept - ended})
    recorded = (tmp_path / "operative_config.gin").read_text()
    assert f"create_gymnasium_environment.environment_id = '{OWN}Vector-v0'" in recorded
    assert f"create_gymnasium_environment.bootstrap_at_time_limit = {bootstrap}" in recorded
    network = "ClassicControlDQNNetwork" if "jax" in agent else "LunarLanderDQNNetwork"
    assert re.search(rf"Agent\.network = @.*{network}\n", recorded)
    assert "Agent.stack_size = 1\n" in recorded


NAN = np.array([0, np.nan])


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize(
    ("fault", "step", "said"),
    [
        ({"reward": np.ones(1)}, 1, "the reward of Broken-v0 is array([1.]); it must be one finite "
         "number, such as float(reward)"),
        ({"bad": NAN, "after": 29}, 30, "env is 'Broken-v0'; its step must return what "
         "observation_space declares: it has nan at [1], and must be finite in float32"),
    ],
)  # fmt: skip
def test_the_step_is_named_at_which_numbers_are_none(tmp_path, capsys, agent, fault, step, said):
    register("Broken", **fault)
    assert run(tmp_path, f"--agent={agent}", "--env=Broken-v0", *tiny(agent)) == 1
    where = f"stopped at step {step} of iteration 1"
    end = "; there is no checkpoint yet; repair it and repeat the command\n"
    assert capsys.readouterr().err.endswith(f"log-dqn train: {where}: {said}{end}")


@pytest.mark.parametrize("agent", AGENTS)
def test_an_error_of_the_environment_is_shown_below_what_can_be_done(tmp_path, capsys, agent):
    # Not taken for one of saving, as the system's errors are.
    register("Broken", bad=FileNotFoundError(2, "No such file", "level.txt"), after=70)
    assert run(tmp_path, f"--agent={agent}", "--env=Broken-v0", *tiny(agent)) == 1
    file = faulty_environment.__file__
    line, trace = capsys.readouterr().err.split("log-dqn train: ")[-1].split("\n", 1)
    assert line == (
        "stopped at step 21 of iteration 2: env is 'Broken-v0'; its step failed: [Errno 2] No such "
        f"file: 'level.txt' (FileNotFoundError in {file}, line 34); the last good checkpoint is "
        f"{tmp_path}/checkpoints/0; repair it and repeat the command"
    )
    assert trace.startswith("Traceback (most recent call last):\n") and "log_dqn.train" not in trace
    assert trace.endswith("FileNotFoundError: [Errno 2] No such file: 'level.txt'\n")


def test_a_run_whose_environment_fails_as_it_resumes_stays(tmp_path, capsys):
    register("Broken")
    command = ["--agent=jax_dqn", "--env=Broken-v0", *tiny("jax_dqn")]
    assert run(tmp_path, *command) == 0
    register("Broken", reset=lambda **_: 1)
    assert run(tmp_path, *command, "--gin_bindings=Runner.num_iterations=3") == 2
    said = capsys.readouterr().err.split("log-dqn train: ")[-1]
    assert said.startswith(
        "error: env is 'Broken-v0'; its reset returned <class 'int'>; it must be "
    )
    assert "--restart" not in said and said.count("\n") == 1


@pytest.mark.parametrize("agent", AGENTS)
def test_nothing_to_learn_from(tmp_path, capsys, agent):
    name = class_of(agent)
    command = [
        f"--agent={agent}", f"--env={OWN}Vector-v0", *tiny(agent),
        f"--gin_bindings={name}.update_horizon=10",
    ]  # fmt: skip
    assert run(tmp_path, *command) == 1
    line = capsys.readouterr().err.split("log-dqn train: ")[-1]
    step = 25 if "jax" in agent else 24
    assert line == (
        f"stopped at training step {step}: there is nothing to learn from: an update needs "
        "update_horizon, 10 steps, after a state, and the longest episode had 5 when it was cut "
        f"off; lower {name}.update_horizon, raise {name}.min_replay_history, or let episodes be "
        "longer; create_gymnasium_environment.bootstrap_at_time_limit=False learns from cuts as "
        "ends; there is no checkpoint yet\n"
    )
    assert run(tmp_path, *command, f"{BINDING}bootstrap_at_time_limit=False") == 0


def test_an_update_before_the_memory_holds_a_transition(tmp_path, capsys):
    command = [
        "--agent=dqn", f"--env={OWN}Vector-v0", *tiny("dqn"),
        "--gin_bindings=DQNAgent.update_horizon=3", "--gin_bindings=DQNAgent.update_period=1",
        "--gin_bindings=DQNAgent.min_replay_history=",
    ]  # fmt: skip
    command[-1] += "2"
    assert run(tmp_path / "a", *command) == 1
    assert capsys.readouterr().err.endswith(
        "log-dqn train: stopped at training step 3: DQNAgent.min_replay_history is 2; it must be "
        "at least 3, the stack_size - 1 + the update_horizon; there is no checkpoint yet\n"
    )
    command[-1] = command[-1][:-1] + "3"
    assert run(tmp_path / "b", *command) == 0


@pytest.mark.parametrize("agent", AGENTS)
def test_weights_that_are_not_finite_are_found_within_the_iteration(
    tmp_path, monkeypatch, capsys, agent
):
    monkeypatch.setattr(runner, "_WEIGHTS_PERIOD", 10)
    create_runner = start.create_runner

    def create_poisoned(*args):
        created = create_runner(*args)
        learner = created._agent
        if "jax" in agent:
            learner.online_params = jax.tree.map(lambda leaf: leaf * np.nan, learner.online_params)
        else:  # relu hides them.
            weights = learner.online_convnet.trainable_variables[0]
            learner._sess.run(weights.assign(np.nan * weights))
        return created

    monkeypatch.setattr(start, "create_runner", create_poisoned)
    assert run(tmp_path, f"--agent={agent}", f"--env={OWN}Vector-v0", *tiny(agent)) == 1
    said = "stopped in iteration 1, which can't be saved: the weights are not finite; there is no "
    assert capsys.readouterr().err.endswith(f"{said}checkpoint yet\n")


@pytest.mark.parametrize("agent", ["log_dqn", pytest.param("jax_log_dqn", marks=pytest.mark.slow)])
def test_agents_train_on_pictures(tmp_path, agent):
    assert run(tmp_path, f"--agent={agent}", f"--env={OWN}Picture-v0", *tiny(agent)) == 0
    assert read_log(tmp_path, 1)["iteration_1"]["train_episode_lengths"] == [TIME_LIMIT] * 8
    recorded = (tmp_path / "operative_config.gin").read_text()
    assert "stack_size = 1\n" not in recorded and "LunarLander" not in recorded
    assert "ClassicControl" not in recorded


BAD = [
    (["--env=CartPol-v1"], "env is 'CartPol-v1'; .*Did you mean: `CartPole`?"),
    (["--env=LunarLander-v2"], "env is 'LunarLander-v2'; it must be an environment of gymnasium"),
    (["--env=ALE/Pong-v5"], "env is 'ALE/Pong-v5'; it must be 'ale_py:ALE/Pong-v5'"),
    (["--env="], "env is ''; it must be an environment of gymnasium"),
    (["--env=no.such.module:X-v0"], "env is 'no.such.module:X-v0'; it must be an id, or MODULE:ID"),
    ([f"--env={OWN}Wector-v0"], "it must be an environment of gymnasium that can be made: "),
    (
        [f"--env={OWN}Continuous-v0"],
        "action_space of tests.*:Own/Continuous-v0 is Box(.*; it must be discrete",
    ),
    (
        [f"--env={OWN}Sequence-v0"],
        "observation_space of .* is Sequence(.*; it must be one that mak",
    ),
    ([f"--env={OWN}Unknown-v0"], "observation_space of .*Own/Unknown-v0 is <.*; it must be one"),
    (["--env=CartPole-v1", "--game=Pong"], "argument --game: not allowed with argument --env"),
    (["--env=CartPole-v1", "--agent=c51"], "agent is 'c51'; it must be one of log_dqn,"),
    (["--env=CartPole-v1", "--gin_files=log_dqn.gin"], "env is 'CartPole-v1'; it must be left"),
    (["--gin_files=log_dqn_gym.gin", "--game=Pong"], "game is 'Pong'; it must be left out, since"),
    (
        ["--env=CartPole-v1", f"{BINDING}bootstrap_at_time_limit=1"],
        "bootstrap_at_time_limit is 1; it must be True or False",
    ),
    (["--env=CartPole-v1", f"{BINDING}settings={{'no_such': 1}}"], "'; .* that can be made: "),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_input_is_answered_in_one_line(tmp_path, capsys, arguments, message):
    assert_refused(tmp_path, capsys, arguments, message)


def test_a_module_with_a_fault_of_its_own_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "bad_syntax.py").write_text("def\n")
    (tmp_path / "bad_code.py").write_text("\nraise RuntimeError('no display')\n")
    for name, message in (
        ("bad_syntax", "invalid syntax (bad_syntax.py, line 1)"),
        ("bad_code", f"no display (RuntimeError in {tmp_path}/bad_code.py, line 2)"),
    ):
        assert_refused(tmp_path, capsys, [f"--env={name}:E-v0"], message)


def test_a_jax_agent_can_be_made_without_gin():
    agent = JaxLogDQNAgent(num_actions=6)
    assert (agent._replay._max_capacity, agent._replay._batch_size) == (1_000_000, 32)
    assert 0 <= agent.begin_episode(np.zeros((84, 84), np.uint8)) < 6
