import numpy as np

from log_dqn.linear import mdp

# State 0: action 0 ends with reward 1; action 1 leads to state 1 without reward.
# State 1: action 0 ends with reward 4; action 1 stays, or with probability 1/2 ends, reward 2.
TWO_STATES = mdp.MDP(
    transitions=np.array([[[0, 0], [0, 1.0]], [[0, 0], [0, 0.5]]]),
    rewards=np.array([[1.0, 0.0], [4.0, 2.0]]),
)


def test_value_iteration_by_hand():
    # V(1) = max(4, 2 + 0.5 gamma V(1)) = 4 at gamma = 0.5, where 2 + 0.25 * 4 = 3.
    np.testing.assert_array_equal(mdp.value_iteration(TWO_STATES, 0.5), [[1, 2], [4, 3]])
    # Below gamma = 1/4, going to state 1 no longer pays.
    np.testing.assert_allclose(mdp.value_iteration(TWO_STATES, 0.2), [[1, 0.8], [4, 2.4]])


def test_evaluate_policy_by_hand():
    # V(1) = 2 + 0.25 V(1) = 8 / 3 when staying; V(0) = 0.5 V(1).
    q = mdp.evaluate_policy(TWO_STATES, np.array([1, 1]), 0.5)
    np.testing.assert_allclose(q, [[1, 4 / 3], [4, 8 / 3]], rtol=1e-15)


def test_finite_horizon_by_hand():
    # One step left: the larger reward. Two: state 0 goes to state 1 and takes 4; state 1 stays
    # for 2 + 0.5 * 4 = 4, as good as ending. Three: staying gives 2 + 0.5 * 4 = 4 again.
    np.testing.assert_array_equal(mdp.finite_horizon_values(TWO_STATES, 1), [1, 4])
    np.testing.assert_array_equal(mdp.finite_horizon_values(TWO_STATES, 3), [4, 4])
    policy = np.array([1, 1])
    # 2, 2 + 0.5 * 2 = 3, 2 + 0.5 * 3 = 3.5.
    np.testing.assert_array_equal(mdp.finite_horizon_return(TWO_STATES, policy, 3), [3, 3.5])
