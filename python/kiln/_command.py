"""The command ``kiln``: runs the program that the package holds."""

import os
import pathlib
import sys


def program() -> pathlib.Path:
    """Where the program is: in the package, beside the build folder's, or where KILN_PROGRAM says.
    Raises FileNotFoundError where there is none."""
    package = pathlib.Path(__file__).parent
    named = os.environ.get("KILN_PROGRAM", "")
    places = [package / "bin" / "kiln", package.parents[1] / "cli" / "kiln", pathlib.Path(named)]
    for place in places:
        if place.is_file():
            return place
    raise FileNotFoundError(
        f"kiln: this build of the package has no program ({places[0]} is missing); "
        "a wheel and `pip install .` have it"
    )


def main() -> int:
    """Becomes the program ``kiln``, with the arguments of this process."""
    try:
        found = program()
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 1
    sys.stdout.flush()
    os.execv(found, [str(found), *sys.argv[1:]])
