"""`python -m plait_lab` is `plait-lab`."""

import sys

from plait_lab.cli import main

if __name__ == "__main__":
    sys.exit(main())
