"""``python -m crenel`` is the command line."""

import sys

from crenel.cli import main

sys.exit(main())
