"""The same as `log-dqn compare`."""

import sys

from log_dqn.commands.compare import main

if __name__ == "__main__":
    sys.exit(main())
