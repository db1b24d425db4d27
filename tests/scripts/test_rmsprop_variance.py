import functools
import json

import numpy as np
import pytest
import rmsprop_variance
import tensorflow as tf

from log_dqn.run_folder import checkpoints

SETTINGS = {"centered": True, "learning_rate": 0.002, "epsilon": 0.9}


def write_run(run, updates, **settings):
    """Makes a run with two weights, whose gradients are 1 and 3, and as many updates of each."""
    run.mkdir()
    config = {f"RMSPropOptimizer.{key}": of for key, of in (SETTINGS | settings).items()}
    (run / "config.json").write_text(json.dumps(config))
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        weights = tf.compat.v1.get_variable("Online/weights", initializer=[0.0, 0.0])
        optimizer = tf.compat.v1.train.RMSPropOptimizer(decay=0.5, **SETTINGS)
        step = optimizer.apply_gradients([(tf.constant([1.0, 3.0]), weights)])
        session.run(tf.compat.v1.global_variables_initializer())
        for _ in range(updates):
            session.run(step)
        save = functools.partial(tf.compat.v1.train.Saver().save, session)
        checkpoints.write(
            run / "checkpoints", 0, lambda folder: save(f"{folder}/weights"), {"of": "a test"}
        )
        return session.run(weights)


def test_a_step_below_epsilon_is_sgds(tmp_path, capsys):
    run = tmp_path / "run"
    write_run(run, updates=2)
    # E[g^2] starts at 1, E[g] at 0: 1 - (3/4)^2, and 1/4 + 9 * 3/4 - (3 * 3/4)^2.
    found = rmsprop_variance.variances(run / "checkpoints" / "0")
    np.testing.assert_allclose(found, [0.4375, 1.9375])
    assert rmsprop_variance.main([f"--base_dir={run}"]) == 0
    assert capsys.readouterr().out == (
        "The gradient's variance is below epsilon, 0.9, for 50.00% of 2 weights, and 1e+00 in the "
        "median; below it, a step is 0.00211 times the gradient\n"
    )


def test_the_last_step_is_sgds_where_the_variance_is_gone(tmp_path):
    before, after = (write_run(tmp_path / str(n), updates=n) for n in (60, 61))
    found = rmsprop_variance.variances(tmp_path / "61" / "checkpoints" / "0")
    np.testing.assert_allclose(found, 0, atol=1e-6)
    np.testing.assert_allclose(before - after, 0.002 / np.sqrt(0.9) * np.array([1, 3]), rtol=1e-5)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"centered": False}, "RMSPropOptimizer.centered is False; it must be True"),
        (None, "run: no checkpoint yet"),
    ],
)
def test_another_run_is_one_line(tmp_path, capsys, settings, named):
    run = tmp_path / "run"
    write_run(run, 1, **settings or {})
    if settings is None:
        for path in (run / "checkpoints" / "0").iterdir():
            path.unlink()
        (run / "checkpoints" / "0").rmdir()
    assert rmsprop_variance.main([f"--base_dir={run}"]) == 2
    assert rmsprop_variance.main([f"--base_dir={tmp_path / 'nowhere'}"]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert named in first
    assert second.endswith("nowhere'; it must be the folder of a run")
