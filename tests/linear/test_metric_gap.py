import functools

import numpy as np
import pytest

from log_dqn.linear import mdp, metric_gap
from log_dqn.linear.metric_gap import HORIZON, MOVES, TASKS, GridTask

GAMMAS = [float(gamma) for gamma in np.linspace(0.01, 0.99, 99)]


def gaps(task):
    best, learned = metric_gap.performance(task, GAMMAS)
    return best - np.array(learned)


def test_task_a_falls():
    gap = gaps(TASKS[0])
    assert np.all(np.diff(gap) <= 0)
    assert gap[0] == 4
    assert gap[-1] == 0
    # -1 now for 5 seven steps later pays from 5 gamma^7 = 1.
    assert np.array(GAMMAS)[gap == 0][0] == pytest.approx(0.2 ** (1 / 7), abs=0.01)


def test_task_b_rises():
    gap = gaps(TASKS[1])
    assert np.all(np.diff(gap) >= 0)
    assert gap[0] == 0
    # The small object is missed.
    assert gap[-1] == 1
    gamma = np.array(GAMMAS)[gap > 0][0]
    # Small object first: rewards at steps 2 and 10; large object first: at steps 6 and 14.
    first_small, first_large = (lambda g: g + 4 * g**9, lambda g: 4 * g**5 + g**13)
    assert first_large(gamma) > first_small(gamma)
    assert first_large(gamma - 0.01) < first_small(gamma - 0.01)


def test_task_c_is_never_0_and_best_inside():
    gap = gaps(TASKS[2])
    assert gap.min() > 0.05
    best = np.flatnonzero(gap < gap.min() + 1e-12)
    assert best[0] > 20
    assert best[-1] < 95
    assert gap[0] > gap.min() + 0.2
    assert gap[-1] > gap.min() + 0.2


def test_no_stationary_policy_is_optimal_in_task_c():
    # Among the cells with both objects left: an optimal action with many steps to go is not
    # optimal with few, in some state that the agent can be in at either time.
    task = TASKS[2]
    process = task.mdp()

    def optimal_actions(horizon):
        q = process.rewards + process.transitions @ mdp.finite_horizon_values(process, horizon - 1)
        return q >= q.max(axis=1, keepdims=True) - 1e-12

    # Follow every optimal action from the start; what is optimal each time a state is visited?
    reached, always = {task.start_state}, {}
    for horizon in range(HORIZON, 0, -1):
        best = optimal_actions(horizon)
        for s in reached:
            always[s] = always.get(s, True) & best[s]
        reached = {
            int(s2)
            for s in reached
            for a in np.flatnonzero(best[s])
            for s2 in np.flatnonzero(process.transitions[s, a])
        }
    assert any(not actions.any() for actions in always.values())


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_finite_horizon_optimum_against_a_recursion(task):
    @functools.cache
    def best(cell, left, steps):
        if steps == 0:
            return 0.0
        outcomes = []
        for move in MOVES:
            target = (cell[0] + move[0], cell[1] + move[1])
            if not (0 <= target[0] < task.shape[0] and 0 <= target[1] < task.shape[1]):
                target = cell
            reward = task.objects[target] if target in left else 0.0
            outcomes.append(reward + best(target, left - {target}, steps - 1))
        up, down, left_, right = outcomes
        return max((1 - task.wind) * x + task.wind * left_ for x in (up, down, left_, right))

    expected = best(task.start, frozenset(task.objects), HORIZON)
    assert metric_gap.performance(task, [0.5])[0] == pytest.approx(expected, rel=1e-12)


def test_transitions_by_hand():
    task = GridTask("-", (1, 3), (0, 1), {(0, 2): 7.0}, wind=0.25)
    process = task.mdp()
    # A state is the cell times 2, plus 1 while the object is there.
    right = process.transitions[task.start_state, 3]
    np.testing.assert_array_equal(right, [0, 0.25, 0, 0, 0.75, 0])
    assert process.rewards[task.start_state, 3] == 0.75 * 7
    # Up runs into the border; without the object nothing is to be had.
    np.testing.assert_array_equal(process.transitions[2, 0], [0.25, 0, 0.75, 0, 0, 0])
    assert process.rewards[2, 3] == 0
    np.testing.assert_allclose(process.transitions.sum(axis=2), 1)
