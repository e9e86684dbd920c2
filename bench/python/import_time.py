"""How long `import kiln` takes beyond NumPy's own import, in processor time. Promise: 150 ms."""

import subprocess
import sys

CODE = "import numpy, time; t = time.process_time(); import kiln; print(time.process_time() - t)"


def main():
    times = [
        float(subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True).stdout)
        for _ in range(10)
    ]
    print(f"import kiln: {1000 * min(times):.0f} ms at best, {1000 * max(times):.0f} ms at worst")


if __name__ == "__main__":
    main()
