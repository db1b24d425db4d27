"""Exact solutions of finite Markov decision processes by dynamic programming."""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class MDP:
    """A finite Markov decision process.

    Attributes:
        transitions: P(s' | s, a), shape (states, actions, states). A row may sum to less than 1;
            the rest is the probability of termination.
        rewards: expected reward of (s, a), shape (states, actions).
    """

    transitions: np.ndarray
    rewards: np.ndarray


def value_iteration(mdp: MDP, gamma: float, tolerance: float = 0.0) -> np.ndarray:
    """Returns Q* for discount factor `gamma`, shape (states, actions).

    It stops where no value changes by more than `tolerance`, relative to that value. With 0 the
    values are a fixed point to the last digit, unless rounding makes them cycle.
    """
    q = np.zeros_like(mdp.rewards)
    # The error falls by gamma or faster at every step: at most this many steps take it from
    # the size of the values to the smallest double.
    for _ in range(int(np.ceil(-800 / np.log(gamma))) + len(q)):
        new_q = mdp.rewards + gamma * (mdp.transitions @ q.max(axis=1))
        done = np.all(np.abs(new_q - q) <= tolerance * np.abs(q))
        q = new_q
        if done:
            break
    return q


def evaluate_policy(mdp: MDP, policy: np.ndarray, gamma: float) -> np.ndarray:
    """Returns Q of the stationary policy, shape (states, actions), by repeated backups.

    Where all rewards have one sign no backup subtracts, so that even values many orders of
    magnitude below the others keep all their digits. The policy has shape (states,).
    """
    own = np.arange(len(policy))[:, None], policy[:, None]
    v = value_iteration(MDP(mdp.transitions[own], mdp.rewards[own]), gamma)[:, 0]
    return mdp.rewards + gamma * (mdp.transitions @ v)


def finite_horizon_values(mdp: MDP, horizon: int) -> np.ndarray:
    """Returns the largest expected undiscounted return of `horizon` steps, shape (states,)."""
    v = np.zeros(len(mdp.rewards))
    for _ in range(horizon):
        v = (mdp.rewards + mdp.transitions @ v).max(axis=1)
    return v


def finite_horizon_return(mdp: MDP, policy: np.ndarray, horizon: int) -> np.ndarray:
    """Returns F of equation 1 for a stationary policy, by start state, shape (states,)."""
    states = np.arange(len(policy))
    v = np.zeros(len(mdp.rewards))
    for _ in range(horizon):
        v = mdp.rewards[states, policy] + mdp.transitions[states, policy] @ v
    return v
