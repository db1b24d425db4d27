"""The same as `log-dqn play`."""

import sys

from log_dqn.commands.play import main

if __name__ == "__main__":
    sys.exit(main())
