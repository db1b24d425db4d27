"""TensorFlow under numpy's names: the `xp` of `log_dqn.mapping` and `log_dqn.log_space`."""

import types
from typing import Any

import tensorflow as tf


def _where(condition: tf.Tensor, x: Any, y: Any) -> tf.Tensor:
    """Calls tf.where; a Python number takes the dtype of the other argument, as in numpy."""
    if not tf.is_tensor(x):
        x = tf.constant(x, y.dtype)
    return tf.where(condition, x, tf.cast(y, x.dtype))


xp = types.SimpleNamespace(
    abs=tf.abs,
    arange=lambda n: tf.range(n, dtype=tf.int64),
    argmax=tf.argmax,
    clip=tf.clip_by_value,
    equal=tf.equal,
    exp=tf.exp,
    expm1=tf.math.expm1,
    full_like=lambda x, value: tf.fill(tf.shape(x), tf.constant(value, x.dtype)),
    log=tf.math.log,
    log1p=tf.math.log1p,
    logaddexp=tf.experimental.numpy.logaddexp,  # -inf at (-inf, -inf).
    max=tf.reduce_max,
    maximum=tf.maximum,
    mean=tf.reduce_mean,
    minimum=tf.minimum,
    not_equal=tf.not_equal,
    ones_like=tf.ones_like,
    sign=tf.sign,
    sort=tf.sort,
    sum=tf.reduce_sum,
    where=_where,
    zeros_like=tf.zeros_like,
)
