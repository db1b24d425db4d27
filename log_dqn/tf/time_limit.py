"""Episodes of Dopamine's TensorFlow agents that a time limit cuts off."""

from typing import Any


def end_episode(agent: Any, reward: float) -> None:
    """Ends an episode of an agent that would go on; does what `agent.end_episode` does otherwise.

    What follows the last step is unknown, so that transitions that need it are left out of
    batches. Those before it bootstrap. Left out too are transitions that end the episode before, if
    it ended fewer than n steps before the cut: the memory looks at n slots. Dopamine's agents take
    every end for terminal, though their replay memory knows of others; of the zeros that it puts
    before the next episode, it would then make transitions.

    The agent is a DQNAgent with a replay memory that samples uniformly.
    """
    if agent.eval_mode:
        return
    memory = agent._replay.memory
    memory.add(agent._observation, agent.action, reward, False, episode_end=True)
    for _ in range(memory._stack_size - 1):
        padding = int(memory.cursor())
        memory._add_zero_transition()
        memory.episode_end_indices.add(padding)
    memory._next_experience_is_episode_start = False
