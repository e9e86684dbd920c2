"""``python -m kiln`` is the command ``kiln``."""

import sys

from kiln._command import main

sys.exit(main())
