"""python -m kiln.distributed.launch: the older name of kiln.distributed.run."""

import sys

from .run import main as main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
