"""One run's update and actions are those of Dopamine's JAX agents."""

import functools
from unittest import mock

import gin
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dopamine.jax.agents.dqn import dqn_agent

from log_dqn.jax import log_dqn_agent, optimizers
from log_dqn.vectorized import agents, learner, networks, pool, replay, timeline

from . import toys

NUM_ACTIONS, BATCH_SIZE, SLOTS = 6, 8, 60
FRAME = 36, 36
PROBLEM = learner.Problem(networks.nature, FRAME, "uint8", 4, BATCH_SIZE, SLOTS - 4)
# Where it's not the arithmetic that counts.
SMALL = PROBLEM._replace(network=toys.small_network)
RUNNER = agents.RunnerSettings(replay_capacity=SLOTS - 4, training_steps=100)
ONE = np.ones(1, np.int32)


def filled(run_agents, problem=PROBLEM):
    """A learner whose memory holds random steps."""
    rng = np.random.default_rng(0)
    of_runs = learner.Learner(
        run_agents, problem, RUNNER, [NUM_ACTIONS] * len(run_agents), range(1, 1 + len(run_agents)),
    )  # fmt: skip
    for run in range(len(run_agents)):
        for name, values in (
            ("frames", rng.integers(0, 256, (of_runs.slots, *FRAME)).astype(np.uint8)),
            ("ages", rng.integers(0, 4, of_runs.slots).astype(np.uint8)),
            ("actions", rng.integers(0, NUM_ACTIONS, of_runs.slots).astype(np.int8)),
            ("rewards", rng.integers(-1, 2, of_runs.slots).astype(np.float32)),
            ("terminals", (rng.random(of_runs.slots) < 0.2).astype(np.uint8)),
        ):
            of_runs.write_memory(run, name, 0, values)
    return of_runs


def learn(of_runs, drawn):
    """Runs an update; returns its statistics."""
    with mock.patch.object(learner, "SUMMARY_PERIOD", 1):
        of_runs.learn(drawn)
    np.testing.assert_array_equal(of_runs.summary.number, drawn.number)
    return of_runs.summary.statistics


def draws(num_runs=1, number=4):
    return toys.due(num_runs, number, oldest=3)


def in_flax(params):
    """Our parameters as those of Dopamine's network."""
    layers = {("Dense_1" if name == "Output" else name): layer for name, layer in params.items()}
    # Ours is stored transposed.
    layers["Dense_0"] = {**layers["Dense_0"], "kernel": layers["Dense_0"]["kernel"].T}
    return {"params": layers}


LOG_LINEAR = {"gamma": 0.9, "c": 0.7, "linear_above": 0.9}
AGENTS = [
    (
        functools.partial(agents.VectorizedLogDQNAgent, **LOG_LINEAR, beta_log=0.001),
        functools.partial(log_dqn_agent.JaxLogDQNAgent, NUM_ACTIONS, FRAME, **LOG_LINEAR),
    ),
    (
        functools.partial(agents.VectorizedDQNAgent, gamma=0.9, learning_rate=0.001),
        functools.partial(dqn_agent.JaxDQNAgent, NUM_ACTIONS, FRAME, gamma=0.9, loss_type="huber"),
    ),
]


def of_run(of_runs, run):
    """One run's parameters, as numpy arrays."""
    arrays = jax.tree.map(np.array, of_runs.weights.params)
    return arrays if of_runs.num_runs == 1 else jax.tree.map(lambda leaf: leaf[run], arrays)


def twins(create, create_other, **settings):
    """Our agent and Dopamine's."""
    optimizer = optimizers.rmsprop_tf(learning_rate=0.001)
    return create(**settings), create_other(optimizer=optimizer, **settings)


@pytest.fixture(autouse=True)
def small_replay_memory():
    gin.parse_config("ReplayBuffer.max_capacity = 10\nReplayBuffer.batch_size = 8")


@pytest.mark.parametrize(
    ("create", "create_other", "num_runs", "n"),
    [
        pytest.param(*AGENTS[0], 3, 3, id="LogDQN, 3 runs, 3 steps"),
        pytest.param(*AGENTS[1], 1, 3, id="DQN, 3 steps"),
        pytest.param(*AGENTS[0], 1, 1, id="LogDQN", marks=pytest.mark.slow),
        pytest.param(*AGENTS[1], 3, 1, id="DQN, 3 runs", marks=pytest.mark.slow),
    ],
)
def test_updates_equal_the_agents(create, create_other, num_runs, n):
    agent, other = twins(create, create_other, update_horizon=n)
    of_runs = filled([agent] * num_runs)
    run = num_runs - 1
    params = of_run(of_runs, run)
    other.online_params = in_flax(params)
    # A target network of its own.
    target = jax.tree.map(lambda leaf: np.float32(1.5) * leaf, in_flax(params))
    other.target_network_params = target
    other.optimizer_state = other.optimizer.init(other.online_params)
    of_runs.weights = of_runs.weights._replace(
        target_params=jax.tree.map(
            lambda leaf: np.float32(1.5) * np.asarray(leaf), of_runs.weights.params
        )
    )
    steps_of_run = replay.Memory(*(np.asarray(f[run]) for f in of_runs.memory))
    key = of_runs.fixed.draw_key[run]
    for number in (4, 8, 12):
        drawn = draws(num_runs, number)
        slots = replay.draw(jax.random.fold_in(key, number), 3, 40, of_runs.slots, BATCH_SIZE, 4, n)
        batch = replay.transitions(replay.read(steps_of_run, np.asarray(slots)), 4, 0.9)
        statistics = learn(of_runs, drawn)
        if isinstance(agent, agents.VectorizedLogDQNAgent):
            other.online_params, other.optimizer_state, theirs = other._train(
                other.online_params, target, other.optimizer_state, batch
            )
        else:
            other.optimizer_state, other.online_params, loss = dqn_agent.train(
                other.network_def, other.online_params, target, other.optimizer,
                other.optimizer_state, batch.states, batch.actions, batch.next_states,
                batch.rewards, batch.terminals, 0.9**n, "huber",
            )  # fmt: skip
            theirs = {"Losses/Loss": loss}
        for tag, value in theirs.items():
            ours = statistics[tag][run]
            assert ours == pytest.approx(float(value), rel=1e-6, abs=1e-7), tag
    ours = in_flax(of_run(of_runs, run))
    for name, layer in other.online_params["params"].items():
        scale = max(float(np.abs(leaf).max()) for leaf in layer.values())
        for leaf in ("kernel", "bias"):
            our, their = ours["params"][name][leaf], np.asarray(layer[leaf])
            np.testing.assert_allclose(our, their, rtol=0, atol=1e-6 * scale, err_msg=name)
            # What three updates have changed is the same too, but for the rounding of a weight.
            start = in_flax(params)["params"][name][leaf]
            change = float(np.abs(their - start).max())
            assert change > 0
            np.testing.assert_allclose(
                our - start, their - start, rtol=0, atol=1e-3 * change + 1e-7 * scale, err_msg=name
            )


@pytest.mark.parametrize(("create", "create_other"), AGENTS, ids=["LogDQN", "DQN"])
def test_actions_are_the_agents(create, create_other):
    # Greedy for epsilon 0, in a stack that forgets at the beginning of an episode.
    agent, other = twins(create, create_other)
    of_runs = learner.Learner([agent], PROBLEM, RUNNER, [NUM_ACTIONS], [1])
    rng = np.random.default_rng(0)
    # A network that tells states apart.
    kernel = of_runs.weights.params["Output"]["kernel"]
    of_runs.weights.params["Output"]["kernel"] = jnp.asarray(
        rng.normal(size=kernel.shape), jnp.float32
    )
    other.online_params = in_flax(of_runs.weights.params)
    other.eval_mode, other.epsilon_eval = True, 0.0
    actions = []
    for number in range(40):
        frame = np.kron(rng.random((6, 6)) < 0.5, np.full((6, 6), 255)).astype(np.uint8)
        begins = number in (0, 25)
        choice = timeline.Choice(
            number=number * ONE, epsilon=np.zeros(1, np.float32), slot=ONE * of_runs.slots,
            age=3 * ONE * (not begins), result_slot=ONE * of_runs.slots,
            terminal=ONE < 0,
        )  # fmt: skip
        (our,) = of_runs.act(frame[None], np.zeros(1, np.float32), choice)
        their = other.begin_episode(frame) if begins else other.step(0.0, frame)
        assert int(our) == int(their)
        actions.append(int(our))
    assert len(set(actions)) > 1


def test_exploration_has_the_rate_asked_for():
    agent = AGENTS[0][0]()
    problem = learner.Problem(toys.small_network, (3,), "uint8", 1, 8, 10)
    of_runs = learner.Learner([agent] * 3, problem, RUNNER, [2, 4, 4], [1, 2, 2])
    frames = np.zeros((3, 3), np.uint8)
    out = np.full(3, of_runs.slots)
    chosen = []
    for number in range(3000):
        epsilons = np.array([1.0, 0.4, 0.4], np.float32)
        choice = timeline.Choice(np.full(3, number), epsilons, out, 0 * out, out, np.zeros(3, bool))
        chosen.append(of_runs.act(frames, np.zeros(3, np.float32), choice))
    first, second, third = np.transpose(chosen)
    # A game's own actions alone, although the other games have more of them.
    np.testing.assert_allclose(np.bincount(first) / 3000, [0.5, 0.5], atol=0.04)
    # 0.6 for the greedy action, and a quarter of 0.4 for each.
    shares = np.sort(np.bincount(second, minlength=4) / 3000)
    np.testing.assert_allclose(shares, [0.1, 0.1, 0.1, 0.7], atol=0.03)
    # The same seed, the same random numbers.
    np.testing.assert_array_equal(second, third)


def test_runs_and_purposes_have_random_numbers_of_their_own():
    of_runs = filled([agents.VectorizedLogDQNAgent()] * 3, SMALL)
    keys = jnp.concatenate([of_runs.fixed.act_key, of_runs.fixed.draw_key])
    assert len(np.unique(jax.random.key_data(keys), axis=0)) == 6


def test_syncs_only_the_target_networks_that_are_due():
    of_runs = filled([AGENTS[0][0]()] * 2, SMALL)
    of_runs.learn(draws(2))
    start = jax.tree.map(np.asarray, of_runs.weights)
    of_runs.sync(np.array([False, True]))
    for old, new, online in zip(
        *map(jax.tree.leaves, (start.target_params, of_runs.weights.target_params, start.params)),
        strict=True,
    ):
        np.testing.assert_array_equal(new[0], old[0])
        np.testing.assert_array_equal(new[1], online[1])
        assert (online[1] != old[1]).any()


def test_jobs_of_a_process_have_optimizers_of_their_own():
    agent = agents.VectorizedDQNAgent(optimizer="rmsprop_tf")
    steps = []
    for decay in (0.5, 0.75):
        gin.bind_parameter("rmsprop_tf.decay", decay)
        of_run = filled([agent], SMALL)
        before = np.array(of_run.weights.params["Output"]["bias"])
        learn(of_run, draws())
        steps.append(np.asarray(of_run.weights.params["Output"]["bias"]) - before)
    # With means of 1 and 0 before, a step is g / sqrt(d + d (1 - d) g^2 + epsilon).
    first, second = np.abs(steps)
    assert np.all(first >= second) and np.any(first > second * 1.1)


def test_a_run_without_an_update_keeps_its_weights():
    of_runs = filled([AGENTS[0][0]()] * 2, SMALL)
    before = [of_runs.run_weights(run) for run in range(2)]
    of_runs.learn(toys.due(2, learns=np.array([True, False])))
    changed = [
        any((old != new).any() for old, new in zip(leaves, of_runs.run_weights(run), strict=True))
        for run, leaves in enumerate(before)
    ]
    assert changed == [True, False]


def test_a_runs_weights_do_not_depend_on_the_others_games():
    def of_games(*num_actions):
        return learner.Learner(
            [agents.VectorizedLogDQNAgent()] * len(num_actions), SMALL, RUNNER, num_actions,
            range(1, 1 + len(num_actions)),
        )  # fmt: skip

    def saved(of_runs):
        return [leaf.copy() for leaf in of_runs.run_weights(0)]

    beside, alone, beside_more = of_games(4, 6), of_games(4), of_games(4, 18)
    # A head has 4 outputs, whatever the others have.
    assert (64, 8) in [leaf.shape for leaf in beside.run_weights(0)]
    assert (64, 12) in [leaf.shape for leaf in beside.run_weights(1)]
    np.testing.assert_equal(saved(beside), saved(alone))
    rng = np.random.default_rng(0)
    other = [rng.normal(size=leaf.shape).astype(leaf.dtype) for leaf in saved(alone)]
    frames = rng.integers(0, 256, FRAME).astype(np.uint8)
    for of_runs, num_runs in ((beside, 2), (alone, 1), (beside_more, 2)):
        unchanged = of_runs.run_weights(num_runs - 1) if num_runs == 2 else []
        of_runs.set_run_weights(0, other)
        np.testing.assert_equal(saved(of_runs), other)
        for ours, theirs in zip(
            of_runs.run_weights(1) if unchanged else [], unchanged, strict=True
        ):
            np.testing.assert_array_equal(ours, theirs)
        params = of_runs.weights.params
        outputs = of_runs._agent.outputs(
            SMALL.network,
            params if num_runs == 1 else jax.tree.map(lambda leaf: leaf[0], params),
            jnp.asarray(np.stack([frames] * 4, axis=-1)[None]),
            4,
        )
        if num_runs == 2 and of_runs is beside:
            expected = outputs
            continue
        for ours, theirs in zip(outputs, expected, strict=True):
            np.testing.assert_allclose(ours[:, :4], theirs[:, :4], rtol=1e-5)


def test_initial_weights():
    # Uniform in +-sqrt(6 / (inputs + outputs)) with the game's own number of actions, whatever
    # the other games have; a minus head of zeros; columns that are not used are zero.
    agent = agents.VectorizedLogDQNAgent()
    params = agents.initial_params(
        agent.head_inits, networks.nature, jax.random.key(0), (84, 84, 4), 4, 6
    )
    kernel = np.asarray(params["Output"]["kernel"])
    assert kernel.shape == (512, 12)
    bound = np.sqrt(6 / (512 + 4))
    assert 0.99 * bound < np.abs(kernel[:, :4]).max() <= bound
    assert (kernel[:, 4:] == 0).all()
    symmetric = agents.VectorizedLogDQNAgent(head_init="symmetric")
    kernel = np.asarray(
        agents.initial_params(
            symmetric.head_inits, networks.nature, jax.random.key(0), (84, 84, 4), 4, 6
        )["Output"]["kernel"]
    )
    assert 0.99 * bound < np.abs(kernel[:, 6:10]).max() <= bound
    assert (kernel[:, 6:10] != kernel[:, :4]).all()
    bound = np.sqrt(6 / ((4 + 32) * 64))
    assert 0.99 * bound < np.abs(np.asarray(params["Conv_0"]["kernel"])).max() <= bound
    assert all((np.asarray(layer["bias"]) == 0).all() for layer in params.values())


def test_what_a_learner_begins_with():
    # Of two agents and games; the number of the last update, -1, stands for none.
    run_agents = [agents.VectorizedLogDQNAgent(head_init=h) for h in ("asymmetric", "symmetric")]
    of_runs = learner.Learner(run_agents, SMALL, RUNNER, [4, 18], [5, 6])
    for run, (agent, num_actions, seed) in enumerate(zip(run_agents, (4, 18), (5, 6), strict=True)):
        key = jax.random.split(jax.random.key(seed), 3)[0]
        params = agents.initial_params(
            agent.head_inits, SMALL.network, key, (*FRAME, 4), num_actions, 18
        )
        network_key = jax.random.split(key, 3)[0]  # The others are the heads'.
        torso, _ = SMALL.network.init(network_key, (*FRAME, 4))
        np.testing.assert_array_equal(params["Dense_0"]["kernel"], torso["Dense_0"]["kernel"])
        for found in (of_runs.weights.params, of_runs.weights.target_params):
            assert jax.tree.structure(found) == jax.tree.structure(params)
            own = jax.tree.map(lambda leaf, run=run: leaf[run], found)
            jax.tree.map(np.testing.assert_array_equal, own, params)
    assert of_runs.summary.number.tolist() == [-1, -1]
    assert not any(field.any() for field in of_runs.memory)


def test_actions_that_a_game_lacks_are_never_greedy():
    # Also where all of the game's own actions are bad.
    for agent in (create() for create, _ in AGENTS):
        params = agents.initial_params(
            agent.head_inits, SMALL.network, jax.random.key(0), (*FRAME, 4), 3, 6
        )
        bias = np.zeros(6 * agent.num_heads, np.float32)
        bias[:6] = [-9, -8, -9, 9, 9, 9]
        if agent.num_heads == 2:
            bias[6:] = [9, 8, 9, -9, -9, -9]
        params["Output"]["bias"] = jnp.asarray(bias)
        outputs = agent.outputs(SMALL.network, params, np.zeros((2, *FRAME, 4), np.uint8), 3)
        keys = agent.action_keys(agent.constants, outputs)
        np.testing.assert_array_equal(np.argmax(keys, axis=-1), [1, 1])
        # Nor in targets.
        batch = (np.array([0, 1]), np.ones(2, np.float32), np.zeros(2, bool))
        loss, _ = agent.batch_loss(agent.constants)(outputs, outputs, *batch)
        own = tuple(head[:, :3] for head in outputs)
        expected, _ = agent.batch_loss(agent.constants)(own, own, *batch)
        assert float(loss) == pytest.approx(float(expected), rel=1e-6)


@pytest.mark.slow
def test_a_memory_of_more_bytes_than_32_bits_count():
    capacity = 620_000  # 4.37 GB
    if pool.free_memory() < 6 * 10**9:
        pytest.skip("needs 6 GB of free memory")
    problem = SMALL._replace(frame_shape=(84, 84), capacity=capacity)
    of_runs = learner.Learner([toys.log_dqn()], problem, RUNNER, [NUM_ACTIONS], [1])
    assert of_runs.memory.frames.nbytes == (capacity + 4) * 84 * 84 > 2**32
    # Frames that tell their slot, on both sides of the end of the ring.
    slots = np.arange(of_runs.slots - 600, of_runs.slots + 600) % of_runs.slots
    frames = np.zeros((1200, 84, 84), np.uint8)
    frames[:, 0, :3] = np.stack([slots % 256, slots // 256 % 256, slots // 65536], axis=-1)
    for part in (slice(0, 600), slice(600, 1200)):
        start = int(slots[part][0])
        of_runs.write_memory(0, "frames", start, frames[part])
        of_runs.write_memory(0, "ages", start, np.full(600, 3, np.uint8))
    oldest = int(slots[10])
    where = replay.draw(jax.random.key(1), oldest, 1000, of_runs.slots, 8, 4, 1)
    steps = replay.read(of_runs.memory, (0, where))
    told = np.asarray(steps.frames)[:, :, 0, :3].astype(int) @ [1, 256, 65536]
    np.testing.assert_array_equal(told, where)
    assert {int(slot > 10**5) for slot in np.asarray(where).ravel()} == {0, 1}
    # Acting stores in the last slot.
    last = np.full(1, of_runs.slots - 1)
    frame = np.full((1, 84, 84), 77, np.uint8)
    zero = np.zeros(1, np.float32)
    choice = timeline.Choice(0 * last, zero, last, 0 * last, last, last < 0)
    before = of_runs.memory.frames.unsafe_buffer_pointer()
    of_runs.act(frame, zero, choice)
    assert of_runs.memory.frames.unsafe_buffer_pointer() == before  # It was not copied.
    np.testing.assert_array_equal(of_runs.read_memory(0, "frames", last[0], last[0] + 1), frame)


def test_without_the_minus_head_only_positive_rewards_are_learned():
    agent = agents.VectorizedLogDQNAgent(minus_head=False, head_init="symmetric")
    of_runs = filled([agent], SMALL)
    start = jax.tree.map(np.asarray, of_runs.weights.params)
    rewards = of_runs.memory.rewards[0]
    unseen = filled([agent], SMALL)
    unseen.write_memory(0, "rewards", 0, np.maximum(rewards, 0))
    assert (rewards < 0).any()
    for number in (4, 8):
        statistics = learn(of_runs, draws(number=number))
        unseen.learn(draws(number=number))
    jax.tree.map(np.testing.assert_array_equal, of_runs.weights.params, unseen.weights.params)
    before, after = (
        params["Output"]["kernel"]
        for params in (start, jax.tree.map(np.asarray, of_runs.weights.params))
    )
    np.testing.assert_array_equal(before[:, NUM_ACTIONS:], after[:, NUM_ACTIONS:])
    assert np.abs(before - after)[:, :NUM_ACTIONS].max() > 1e-5
    # q_init_minus is 0, of which the mapping makes its floor.
    assert statistics["Values/QMinus"][0] == pytest.approx(0.96**100, rel=1e-5)
    outputs = agent.outputs(SMALL.network, of_runs.weights.params, np.full((1, *FRAME, 4), 99), 6)
    assert agent.action_keys(agent.constants, outputs).argmax() == outputs[0].argmax()


def test_reference_to_learner_state_is_checked(tmp_path):
    of_runs = learner.Learner(
        [toys.log_dqn()], toys.problem(toys.Catch), toys.RUNNER, [toys.Catch.num_actions], [1]
    )
    leaves = of_runs.run_weights(0)
    with pytest.raises(ValueError, match="another network"):
        of_runs.set_run_weights(0, [leaf[..., :1] for leaf in leaves])


def test_agents_of_one_program_are_alike_at_any_discount_factor_and_horizon():
    first, second = (toys.log_dqn(gamma=g, update_horizon=20_000) for g in (0.9999, 0.99999))
    assert first.alike == second.alike and first.alike.update_horizon == 20_000
