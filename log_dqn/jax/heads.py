"""Two heads on any of Dopamine's JAX networks; needs neither TensorFlow nor Dopamine."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn

from log_dqn import log_space
from log_dqn.jax import devices


class TwoHeadedOutput(NamedTuple):
    """What a two-headed network says of a state.

    Attributes:
        q_values: numbers that are largest where Q = q_+ - q_- is, shape [num_actions]; Q itself
            is beyond float32 at low discount factors.
        plus: outputs of the plus head, shape [num_actions].
        minus: outputs of the minus head, shape [num_actions].
    """

    q_values: jax.Array
    plus: jax.Array
    minus: jax.Array


@dataclasses.dataclass(frozen=True)
class TwoHeadedNetwork:
    """A network with twice the outputs, the plus head's first; the torso is shared.

    Stands where Dopamine's agents expect their network.

    Attributes:
        network: one of Dopamine's kind, whose last layer is a `Dense` with
            `2 * num_actions` features and whose output has a field `q_values`.
        num_actions: number of actions.
        head_init: 'asymmetric' for a minus head of zeros (Appendix C.1), 'symmetric' for two
            heads initialised alike, each as a layer of its own.
        update: settings of the update, by which outputs are compared.
        precision: of the torso, one of `log_space.PRECISIONS`. A layer of the torso that is itself
            like the output layer is in float32.
    """

    network: nn.Module
    num_actions: int
    head_init: str
    update: log_space.LogUpdate
    precision: str = "float32"

    def _is_output(self, module: nn.Module) -> bool:
        return isinstance(module, nn.Dense) and module.features == 2 * self.num_actions

    def _in_precision(self, call: Any, args: Any, kwargs: Any, context: Any) -> Any:
        """Calls a method of a module of the network, in the torso's precision or the heads'."""
        module = context.module
        if self._is_output(module):
            with devices.in_precision("float32"):
                return call(*args, **kwargs)
        # A layer of flax computes in its `dtype`, and keeps its parameters in another.
        is_layer = context.method_name == "__call__" and getattr(module, "dtype", module) is None
        if is_layer and self.precision == "bfloat16":
            call = module.clone(parent=module.scope, dtype=jnp.bfloat16)
        return call(*args, **kwargs)

    def init(self, rng: jax.Array, x: Any) -> Any:
        """Returns initial parameters of `network`, which takes states like `x`.

        Raises:
            ValueError: if the network has no such last layer.
        """
        outputs = []

        def note_outputs(call: Any, args: Any, kwargs: Any, context: Any) -> Any:
            module = context.module
            if self._is_output(module):
                outputs.append((module.path, module.kernel_init))
            return call(*args, **kwargs)

        rng, plus_rng, minus_rng = jax.random.split(rng, 3)
        with nn.intercept_methods(note_outputs):
            params = self.network.init(rng, x=x)
        if not outputs:
            raise ValueError(
                f"network is {type(self.network).__name__}; its last layer must be a Dense layer "
                "with as many features as the network is asked for"
            )
        path, kernel_init = outputs[-1]
        layer = params["params"]
        for name in path:
            layer = layer[name]
        kernel = layer["kernel"]
        shape = (*kernel.shape[:-1], self.num_actions)
        plus = kernel_init(plus_rng, shape, kernel.dtype)
        if self.head_init == "asymmetric":
            minus = jnp.zeros(shape, kernel.dtype)
        else:
            minus = kernel_init(minus_rng, shape, kernel.dtype)
        layer["kernel"] = jnp.concatenate([plus, minus], axis=-1)
        return params

    def apply(self, params: Any, x: Any) -> TwoHeadedOutput:
        """Returns the outputs in one state."""
        with devices.in_precision(self.precision), nn.intercept_methods(self._in_precision):
            outputs: Any = self.network.apply(params, x)
        plus, minus = jnp.split(outputs.q_values, 2, axis=-1)
        return TwoHeadedOutput(self.update.rule.action_keys((plus, minus), jnp), plus, minus)

    def batch_outputs(self, params: Any, states: Any) -> tuple[jax.Array, jax.Array]:
        """Returns the pair of outputs, shape [batch_size, num_actions], of a batch of states."""
        outputs = jax.vmap(lambda state: self.apply(params, state))(states)
        return outputs.plus, outputs.minus
