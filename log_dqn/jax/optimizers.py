"""Optimizers in optax, configurable in gin: RMSProp as TensorFlow 1 has it, and Adam.

The paper and the published DQN train with the first, Dopamine's JAX agents with the second.
"""

from typing import Any

import gin
import optax

from log_dqn.checks import check_bool, check_decay, check_positive


def _check(positive: dict[str, Any], decays: dict[str, Any]) -> None:
    for name, value in positive.items():
        check_positive(name, value)
    for name, value in decays.items():
        check_decay(name, value)


@gin.configurable
def rmsprop_tf(
    learning_rate: float = 0.00025,
    decay: float = 0.95,
    momentum: float = 0.0,
    epsilon: float = 0.00001,
    centered: bool = True,
) -> optax.GradientTransformation:
    """Creates an optimizer that steps as `tf.compat.v1.train.RMSPropOptimizer` does.

    The mean square starts at one and the mean at zero; epsilon is inside the square root:

        ms <- decay ms + (1 - decay) g^2
        mg <- decay mg + (1 - decay) g
        mom <- momentum mom + learning_rate g / sqrt(ms - mg^2 + epsilon)
        w <- w - mom

    The defaults are the published DQN baseline's; the paper's LogDQN has learning rate 0.0025.

    Args:
        learning_rate: step-size.
        decay: decay of the two means.
        momentum: decay of the sum of steps; 0 for none.
        epsilon: added to the variance.
        centered: whether mg^2 is subtracted.

    Raises:
        ValueError: if a parameter is outside its range.
    """
    check_bool("centered", centered)
    _check(
        {"learning_rate": learning_rate, "epsilon": epsilon}, {"decay": decay, "momentum": momentum}
    )
    return optax.rmsprop(
        learning_rate,
        decay=decay,
        eps=epsilon,
        initial_scale=1.0,
        eps_in_sqrt=True,
        centered=centered,
        momentum=momentum or None,
    )


@gin.configurable
def adam(
    learning_rate: float = 0.00025,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 0.0003125,
) -> optax.GradientTransformation:
    """Creates Adam (Kingma and Ba, 2015).

    The defaults are those of DQN on MinAtar in Obando-Ceron and Castro (2021). TensorFlow's adds
    epsilon before the bias correction: its first steps are smaller where gradients are small.

    Args:
        learning_rate: step-size.
        beta1: decay of the mean gradient.
        beta2: decay of the mean square.
        epsilon: added to the root of the mean square.

    Raises:
        ValueError: if a parameter is outside its range.
    """
    _check({"learning_rate": learning_rate, "epsilon": epsilon}, {"beta1": beta1, "beta2": beta2})
    return optax.adam(learning_rate, beta1, beta2, epsilon)


OPTIMIZERS = {"rmsprop_tf": rmsprop_tf, "adam": adam}
