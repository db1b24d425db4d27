"""How training says that it has to stop."""


class RunStopped(Exception):
    """Training has to stop; the message says why, in one line."""

    def __init__(self, message: str, status: int = 1) -> None:
        """Takes the message and the exit status for the process."""
        super().__init__(message)
        self.status = status
