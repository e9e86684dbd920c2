"""The command ``kiln``: runs the program that the package holds."""

import os
import pathlib
import sys


def main() -> int:
    """Becomes the program ``kiln``, with the arguments of this process."""
    program = pathlib.Path(__file__).parent / "bin" / "kiln"
    if not program.is_file():
        print(
            f"kiln: this build of the package has no program ({program} is missing); "
            "a wheel and `pip install .` have it",
            file=sys.stderr,
        )
        return 1
    sys.stdout.flush()
    os.execv(program, [str(program), *sys.argv[1:]])
