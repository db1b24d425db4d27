"""What a run is on disk: its layout, configuration, lock, checkpoints and data.

A run's folder holds, beside TensorBoard's events, what Dopamine's own readers know: `logs/` and
`metrics/`. `checkpoints/` is this package's own, as are `config.json` and `lock`.
"""
