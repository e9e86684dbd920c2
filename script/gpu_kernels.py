"""Compiles kernels from a folder of compiled ones with nvcc; used by script/gpu_kernels.

Each file of the folder holds the text that it was compiled from (kiln/backend/gpu/runtime/
program_cache.h). The texts share the prelude; the rest of each is put into one of a few .cu files,
with a name of its own and with its macros taken back at its end.
"""

import glob
import os
import re
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ARCHITECTURES = ("80", "90a")
NAME = "kiln_kernel"


def texts(folder):
    """The kernels' texts without the prelude, and the prelude."""
    prelude = None
    found = set()
    for path in sorted(glob.glob(os.path.join(folder, "*.kernel"))):
        with open(path, "rb") as file:
            data = file.read()
        magic, key_bytes = struct.unpack_from("<8sQ", data)
        assert magic == b"KILNKRN1", path
        key = data[32 : 32 + key_bytes].decode()
        text = key.split("\n", 2)[2]  # behind the device and the driver
        head, _, rest = text.partition(f"#define NAME {NAME}\n")
        assert prelude in (None, head), "kernels of two versions of Kiln; empty the folder"
        prelude = head
        found.add(rest)
    return prelude, sorted(found)


def as_cuda(prelude, kernels):
    out = [prelude]
    for number, text in kernels:
        names = re.findall(r"^#define (\w+)", text, re.MULTILINE)
        out.append(f"#define NAME {NAME}_{number}\n{text}\n#undef NAME\n")
        out.extend(f"#undef {name}\n" for name in names)
    return "".join(out)


def compile_one(nvcc, root, source, architecture):
    run = subprocess.run(
        [nvcc, "-std=c++17", "-cubin", f"-arch=sm_{architecture}", "-fmad=false", "-Xptxas", "-v",
         f"-I{root}/include", "-o", source.replace(".cu", f".{architecture}.cubin"), source],
        capture_output=True, text=True,
    )  # fmt: skip
    if run.returncode != 0:
        sys.exit(f"gpu_kernels: {source} does not compile for sm_{architecture}:\n{run.stderr[-4000:]}")
    return run.stderr


def main(folder, tools, work):
    prelude, kernels = texts(folder)
    if not kernels:
        sys.exit(f"gpu_kernels: no kernels in {folder}; the tests of the OpenCL device make them")
    (root,) = glob.glob(f"{tools}/lib/python3*/site-packages/nvidia/cu13")
    nvcc = f"{root}/bin/nvcc"
    os.makedirs(work, exist_ok=True)
    parts = max(1, os.cpu_count() or 1)
    numbered = list(enumerate(kernels))
    sources = []
    for part in range(parts):
        source = f"{work}/kernels_{part}.cu"
        with open(source, "w") as file:
            file.write(as_cuda(prelude, numbered[part::parts]))
        sources.append(source)
    for architecture in ARCHITECTURES:
        with ThreadPoolExecutor(parts) as pool:
            logs = list(pool.map(lambda s: compile_one(nvcc, root, s, architecture), sources))
        log = "".join(logs)
        registers = [int(n) for n in re.findall(r"Used (\d+) registers", log)]
        entries = re.findall(
            rf"Function properties for ({NAME}_\d+)\n.*?(\d+) bytes spill stores", log)
        spilling = [name for name, stores in entries if int(stores) > 0]
        if len(registers) != len(kernels):
            sys.exit(f"gpu_kernels: {len(registers)} of {len(kernels)} kernels in sm_{architecture}")
        print(
            f"gpu_kernels: sm_{architecture}: {len(registers)} kernels, at most {max(registers)}"
            f" registers, {len(spilling)} with spills{': ' if spilling else ''}{' '.join(spilling)}"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
