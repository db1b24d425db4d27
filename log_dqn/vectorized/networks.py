"""Networks as pure functions of their parameters: for pictures, for boards and for vectors.

Parameters have the names and shapes of Dopamine's networks in flax, but for the large dense layer's
kernel of `nature`, which is stored transposed: on a CPU its backward pass then needs no transposed
copy of 16 MB.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from log_dqn.checks import check
from log_dqn.cli import environments
from log_dqn.jax import devices

# Features, size and stride of the convolutions, and units of the hidden layer.
_CONVOLUTIONS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
_HIDDEN_UNITS = 512

glorot_uniform = jax.nn.initializers.glorot_uniform()


class Network(NamedTuple):
    """A network that maps states to the outputs of a last, dense layer.

    Attributes:
        init: takes a random key and the shape of a state, and returns the parameters of all
            layers but the last, and the number of the last layer's inputs.
        apply: takes these parameters and states, shape [batch_size, ...], and returns the last
            layer's inputs, shape [batch_size, num_features].
    """

    init: Callable[[jax.Array, tuple[int, ...]], tuple[dict[str, Any], int]]
    apply: Callable[[dict[str, Any], jax.Array], jax.Array]


def dense(params: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    """Applies a dense layer."""
    return x @ params["kernel"] + params["bias"]


def dense_params(key: jax.Array, inputs: int, outputs: int) -> dict[str, jax.Array]:
    """Returns a dense layer's initial parameters: Glorot uniform, and zeros."""
    return {"kernel": glorot_uniform(key, (inputs, outputs)), "bias": jnp.zeros(outputs)}


def _convolution(
    params: dict[str, jax.Array],
    x: jax.Array,
    stride: int,
    padding: str | list[tuple[int, int]] = "SAME",
) -> jax.Array:
    """Applies a convolution to shape [batch_size, height, width, channels]."""
    products = jax.lax.conv_general_dilated(
        x, params["kernel"], (stride, stride), padding, dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    return products + params["bias"]


def _with_channels(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Returns the shape of states whose frames' channels, and the stack's frames, are channels."""
    height, width, *channels = shape
    return height, width, math.prod(channels)


def _nature_init(key: jax.Array, state_shape: tuple[int, ...]) -> tuple[dict[str, Any], int]:
    height, width, channels = _with_channels(state_shape)
    keys = jax.random.split(key, len(_CONVOLUTIONS) + 1)
    params: dict[str, Any] = {}
    for i, (features, size, stride) in enumerate(_CONVOLUTIONS):
        kernel = glorot_uniform(keys[i], (size, size, channels, features))
        params[f"Conv_{i}"] = {"kernel": kernel, "bias": jnp.zeros(features)}
        height, width = math.ceil(height / stride), math.ceil(width / stride)
        channels = features
    hidden = dense_params(keys[-1], height * width * channels, _HIDDEN_UNITS)
    params["Dense_0"] = {**hidden, "kernel": hidden["kernel"].T}
    return params, _HIDDEN_UNITS


def _nature_apply(params: dict[str, Any], states: jax.Array) -> jax.Array:
    x = states.reshape(len(states), *_with_channels(states.shape[1:]))
    x = x.astype(params["Conv_0"]["kernel"].dtype) / (255 if states.dtype == jnp.uint8 else 1)
    for i, (_, _, stride) in enumerate(_CONVOLUTIONS):
        x = jax.nn.relu(_convolution(params[f"Conv_{i}"], x, stride))
    x, kernel = x.reshape(len(x), -1), params["Dense_0"]["kernel"]
    # A single state as a vector: as a matrix it would have the kernel transposed after all.
    hidden = (kernel @ x[0])[None] if len(x) == 1 else x @ kernel.T
    return jax.nn.relu(hidden + params["Dense_0"]["bias"])


nature = Network(_nature_init, _nature_apply)
"""The network of Mnih et al. (2015). Bytes are divided by 255; a stack's frames are channels."""

_MINATAR_FEATURES, _MINATAR_HIDDEN_UNITS = 16, 128

# On a CPU, an update with convolutions of so few channels takes JAX 0.6's old runtime 0.6 of the
# time that it takes with products of matrices, and the new one, the only one from 0.7 on, six times
# as much.
_AS_PRODUCT = jax.__version_info__ >= (0, 7)


def _small_convolution(params: dict[str, jax.Array], x: jax.Array, padding: int) -> jax.Array:
    """Applies a 3 x 3 convolution of stride 1 with so many zeros on each side.

    Takes shape [batch_size, height, width, channels] and returns
    [batch_size, height + 2 padding - 2, width + 2 padding - 2, features].
    """
    kernel = params["kernel"]
    if len(x) > 1 and not _AS_PRODUCT:
        return _convolution(params, x, 1, [(padding, padding)] * 2)
    # Two neighbours in a row at a time, by a kernel of 3 x 4 that has both outputs.
    height, width = (length + 2 * padding - 2 for length in x.shape[1:3])
    x = jnp.pad(x, [(0, 0), (padding, padding), (padding, padding + width % 2), (0, 0)])
    shifted = [x[:, i : i + height, j : j + width : 2] for i in range(3) for j in range(4)]
    kernels = [jnp.pad(kernel, [(0, 0), (i, 1 - i), (0, 0), (0, 0)]) for i in range(2)]
    features = kernel.shape[-1]
    pairs = jnp.concatenate(shifted, -1) @ jnp.stack(kernels, -2).reshape(-1, 2 * features)
    return pairs.reshape(len(x), height, -1, features)[:, :, :width] + params["bias"]


def _minatar_network(padding: int, hidden_units: int) -> Network:
    """Returns a network of one convolution and, unless it has 0 units, one hidden layer."""

    def init(key: jax.Array, state_shape: tuple[int, ...]) -> tuple[dict[str, Any], int]:
        height, width, channels = _with_channels(state_shape)
        conv_key, dense_key = jax.random.split(key)
        kernel = glorot_uniform(conv_key, (3, 3, channels, _MINATAR_FEATURES))
        params = {"Conv_0": {"kernel": kernel, "bias": jnp.zeros(_MINATAR_FEATURES)}}
        features = (height + 2 * padding - 2) * (width + 2 * padding - 2) * _MINATAR_FEATURES
        if not hidden_units:
            return params, features
        return {**params, "Dense_0": dense_params(dense_key, features, hidden_units)}, hidden_units

    def apply(params: dict[str, Any], states: jax.Array) -> jax.Array:
        x = states.reshape(len(states), *_with_channels(states.shape[1:]))
        x = x.astype(params["Conv_0"]["kernel"].dtype)
        x = jax.nn.relu(_small_convolution(params["Conv_0"], x, padding)).reshape(len(x), -1)
        return jax.nn.relu(dense(params["Dense_0"], x)) if hidden_units else x

    return Network(init, apply)


revisiting_rainbow = _minatar_network(padding=1, hidden_units=0)
"""Dopamine's `MinatarDQNNetwork` as Obando-Ceron and Castro (2021) mean it, with a convolution over
rows and columns."""

minatar = _minatar_network(padding=0, hidden_units=_MINATAR_HIDDEN_UNITS)
"""The network of Young and Tian (2019)."""


def _dense_init(key: jax.Array, state_shape: tuple[int, ...]) -> tuple[dict[str, Any], int]:
    keys, units = jax.random.split(key), (math.prod(state_shape), _HIDDEN_UNITS, _HIDDEN_UNITS)
    return {f"Dense_{i}": dense_params(keys[i], *units[i : i + 2]) for i in range(2)}, units[-1]


def _dense_apply(params: dict[str, Any], states: jax.Array) -> jax.Array:
    x = states.reshape(len(states), -1).astype(params["Dense_0"]["kernel"].dtype)
    return jax.nn.relu(dense(params["Dense_1"], jax.nn.relu(dense(params["Dense_0"], x))))


NETWORKS = {
    "nature": nature, "revisiting_rainbow": revisiting_rainbow, "minatar": minatar,
    "dense": Network(_dense_init, _dense_apply),
}  # fmt: skip
"""Networks by their names in gin; `dense` has two layers of 512 units, as `train --env` has."""

BY_SHAPE = "by_shape"
"""The name in gin that lets `by_shape` choose one of `NETWORKS`."""


def by_shape(network: Any, frame_shape: tuple[int, ...]) -> Any:
    """Returns the name of a network; for BY_SHAPE, of one that fits the observations.

    Raises:
        ValueError: if it is convolutional, and the observations are neither boards nor pictures,
            or, for BY_SHAPE, are pictures with their channels first.
    """
    has_sides = len(frame_shape) in (2, 3)
    if network == BY_SHAPE:
        # Fewer rows or columns than a board has are channels.
        is_turned = len(frame_shape) == 3 and min(frame_shape[:2]) <= 4
        is_allowed = not is_turned or sorted(frame_shape)[1] < environments.LEAST_SIDE
        allowed = f"another for {frame_shape}, unless the channels are moved to the end"
        check("network", network, is_allowed, allowed)
        is_large = has_sides and min(frame_shape[:2]) >= environments.LEAST_SIDE
        return ("nature" if is_large else "revisiting_rainbow") if has_sides else "dense"
    fits = has_sides or not isinstance(network, str) or network == "dense"
    check("network", network, fits, f"'dense' for observations of shape {frame_shape}")
    fits = network != "minatar" or min(frame_shape[:2]) >= 3
    check("network", network, fits, f"another for {frame_shape}: sides must be at least 3")
    return network


def preparation(
    space: Any, frame_shape: tuple[int, ...], frame_dtype: Any = None
) -> Callable[[jax.Array], jax.Array]:
    """Returns a function from states to float32 inputs of a network.

    States have the stack as their last axis. The number of a discrete state becomes one-hot.
    Bounded components of vectors are scaled to [-1, 1]. Boards and pictures whose bound is above 1
    are divided by it, so that empty fields stay zeros.
    The bounds of a picture of bytes are 0 and 255 unless the space has others.
    """
    count = getattr(space, "n", None)
    if frame_shape == () and count is not None:
        return lambda states: jax.nn.one_hot(states, count, axis=-2)
    of_bytes = frame_dtype == "uint8" and by_shape(BY_SHAPE, frame_shape) == "nature"
    bounds = (0, 255) if of_bytes else (-np.inf, np.inf)
    low, high = (
        np.broadcast_to(np.asarray(getattr(space, name, bound), float), frame_shape)
        for name, bound in zip(("low", "high"), bounds, strict=True)
    )
    center, half = environments.scaling(low, high)
    if len(frame_shape) in (2, 3):  # The largest bound.
        center, half = np.zeros(()), np.maximum((np.abs(center) + half).max(), 1)
    center, half = (np.asarray(x, np.float32)[..., None] for x in (center, half))
    return lambda states: (states.astype(jnp.float32) - center) / half


def _in_flax(module: Any) -> Network:
    """Returns the network of a flax module, or of its class, which maps a batch to features."""
    module = module() if isinstance(module, type) else module

    def init(key: jax.Array, state_shape: tuple[int, ...]) -> tuple[dict[str, Any], int]:
        states = jnp.zeros((1, *state_shape))
        features, variables = module.init_with_output(key, states)
        return dict(variables.get("params", {})), features.shape[-1]

    def apply(params: dict[str, Any], states: jax.Array) -> jax.Array:
        states = states.astype(jax.tree.leaves(params)[0].dtype)
        return module.apply({"params": params}, states)

    return Network(init, apply)


@functools.cache
def create(
    name: Any, precision: str, prepare: Callable[[jax.Array], jax.Array] | None = None
) -> Network:
    """Returns one of `NETWORKS`, or flax's, that computes in one of `log_space.PRECISIONS`.

    States pass through `prepare` first. The outputs are float32.
    """
    network = NETWORKS[name] if isinstance(name, str) else _in_flax(name)

    def init(key: jax.Array, state_shape: tuple[int, ...]) -> tuple[dict[str, Any], int]:
        if prepare is not None:
            states = jax.ShapeDtypeStruct((1, *state_shape), jnp.int32)
            state_shape = jax.eval_shape(prepare, states).shape[1:]
        return network.init(key, state_shape)

    def apply(params: dict[str, Any], states: jax.Array) -> jax.Array:
        if prepare is not None:
            states = prepare(states)
        if precision == "bfloat16":
            params = jax.tree.map(lambda x: x.astype(jnp.bfloat16), params)
        with devices.in_precision(precision):
            return network.apply(params, states).astype(jnp.float32)

    return Network(init, apply)
