"""The same as `log-dqn figures`."""

import sys

from log_dqn.commands.linear_figures import main

if __name__ == "__main__":
    sys.exit(main())
