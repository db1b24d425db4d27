"""Two heads on any of Dopamine's TensorFlow networks."""

from collections.abc import Callable, Iterable
from typing import Any

import tensorflow as tf

from log_dqn.checks import check


def _head_initializer(
    base: tf.keras.initializers.Initializer, head_init: str
) -> Callable[..., tf.Tensor]:
    """Returns an initializer of a doubled output layer, each head as a layer of its own.

    `base` is the network's own initializer, Glorot uniform in Dopamine's. `head_init` is
    'asymmetric' for a minus head of zeros (Appendix C.1), or 'symmetric' for two heads initialised
    alike.
    """

    def initialize(shape: Any, dtype: Any = None, **kwargs: Any) -> tf.Tensor:
        """Returns a kernel of shape [..., 2 * num_actions], the plus head first."""
        head_shape = (*shape[:-1], shape[-1] // 2)
        plus = base(head_shape, dtype=dtype, **kwargs)
        if head_init == "asymmetric":
            minus = tf.zeros(head_shape, dtype)
        else:
            # A copy: an initializer may repeat its numbers when it is called twice.
            twin: Any = base
            config: dict[str, Any] = getattr(base, "get_config", dict)()
            if config:
                seed = config.get("seed")
                config |= {} if seed is None else {"seed": seed + 1}
                twin = type(base).from_config(config)
            minus = twin(head_shape, dtype=dtype, **kwargs)
        return tf.concat([plus, minus], axis=-1)

    return initialize


def create_two_headed_network(
    network: Callable[..., tf.keras.Model],
    num_actions: int,
    head_init: str,
    dtype: str,
    precision: str,
    name: str,
) -> tf.keras.Model:
    """Builds a network with twice the outputs; the torso is shared and unchanged.

    Args:
        network: Dopamine's kind of network class, called as `network(num_outputs, name=name)`,
            whose last layer is a `Dense` with `num_outputs` units, the last such that its
            constructor assigns.
        num_actions: number of actions; the network gets twice as many outputs.
        head_init: 'asymmetric' or 'symmetric' (see `_head_initializer`).
        dtype: 'float32' or 'float64', of the output layer's weights and arithmetic.
        precision: of the torso's arithmetic, one of `log_space.PRECISIONS`.
        name: name of the network and of its variables' scope.

    Returns:
        The network; `split_heads` takes its outputs apart.

    Raises:
        ValueError: if the network is none of Keras, as JAX's, has no such last layer, or has built
            it.
    """
    model = network(2 * num_actions, name=name)
    check("network", network, isinstance(model, tf.keras.Model), "one of Keras, for TensorFlow")
    # `submodules` has layers within others last; these are in the order of the assignments.
    layers = [*model._flatten_layers()]
    known = [id(layer) for layer in layers]
    outputs = [
        layer
        for layer in [*(of for of in model.submodules if id(of) not in known), *layers]
        if isinstance(layer, tf.keras.layers.Dense) and layer.units == 2 * num_actions
    ]
    if not outputs:
        raise ValueError(
            f"network is {network}; its last layer must be a Dense layer with as many units as "
            "the network is asked for, and be made in its constructor"
        )
    output = outputs[-1]
    check("network", network, not output.built, "one whose layers are built when it is called")
    output.kernel_initializer = _head_initializer(output.kernel_initializer, head_init)
    # Keras 2 sets a layer's dtype only in its constructor, which is the network's business.
    if precision == "bfloat16":
        # As JAX's agent: a hidden layer like the output stays in float32.
        kept = [id(layer) for layer in outputs]
        _compute_in_bfloat16(layer for layer in model.submodules if id(layer) not in kept)
    output._set_dtype_policy(dtype)
    return model


def _compute_in_bfloat16(modules: Iterable[tf.Module]) -> None:
    """Makes the layers among some modules that hold no others compute so, with float32 weights."""
    for module in modules:
        if isinstance(module, tf.keras.layers.Layer) and not module.submodules:
            module._set_dtype_policy("mixed_bfloat16")
            module._autocast = True  # Its inputs too, as in TensorFlow 2.


def split_heads(outputs: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Splits outputs of shape [batch, 2 * num_actions] into the plus and the minus head's."""
    plus, minus = tf.split(outputs, 2, axis=-1)
    return plus, minus
