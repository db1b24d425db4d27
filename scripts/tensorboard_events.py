"""TensorBoard's events of a run."""

import pathlib
from typing import Any

from log_dqn import compat


def read(folder: pathlib.Path) -> Any:
    """Returns the `EventAccumulator` of a run's folder, with each scalar that was written.

    Raises:
        ValueError: its events are damaged.
    """
    with compat.quiet():  # It may import TensorFlow.
        from google.protobuf.message import DecodeError
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        try:
            return EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()
        except DecodeError as error:
            raise ValueError(f"{folder}: damaged events of TensorBoard ({error})") from None
