"""Kernels that are compiled ahead for CUDA: their list, and what nvcc makes of it.

    cuda_kernels.py list FOLDER...        writes kernels/ahead.json from folders of kernels that programs
                                          kept (KILN_KERNEL_CACHE), on any device
    cuda_kernels.py make OUT NVCC         compiles the list into OUT/images.cpp with OUT/image_N.fatbin,
                                          and writes each kernel's text to OUT/texts

A kernel's number is a hash of its whole text, as kiln/backend/gpu/device.cpp makes it; the backend
looks for that number (runtime/cuda_images.h). So a list that is older than the texts is no danger:
what it lacks is compiled when it is used.
"""

import glob
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
KERNELS = os.path.join(HERE, "..", "kiln", "backend", "gpu", "kernels")
LIST = os.path.join(KERNELS, "ahead.json")
HEAD = "#define NAME kiln_kernel\n"
IMAGES = 4
# Kernels with these libraries use instructions of Hopper's alone, and have an image of their own.
HOPPER = {"wgmma"}
# GPUs since Ampere run the first, Hopper the second, later ones compile the last when they load it.
TARGETS = ("arch=compute_80,code=sm_80", "arch=compute_90a,code=sm_90a",
           "arch=compute_80,code=compute_80")  # fmt: skip
HOPPER_TARGETS = ("arch=compute_90a,code=sm_90a",)


def texts_of_dialect():
    out = {}
    for path in glob.glob(os.path.join(KERNELS, "*.k")):
        with open(path) as file:
            out[os.path.basename(path)[:-2]] = file.read()
    return out


def parts_of(rest, texts):
    """A text behind the prelude as (macros, libraries, file); None for a text of another version."""
    for name in sorted(texts, key=lambda n: -len(texts[n])):
        if name != "prelude" and texts[name] and rest.endswith(texts[name]):
            rest = rest[: -len(texts[name])]
            libraries = []
            while True:
                for library in texts:
                    if library != "prelude" and rest.endswith(texts[library]):
                        libraries.insert(0, library)
                        rest = rest[: -len(texts[library])]
                        break
                else:
                    break
            only_macros = all(l.startswith("#define") or not l for l in rest.split("\n"))
            return (rest, libraries, name) if only_macros else None
    return None


def make_list(folders):
    sys.path.insert(0, HERE)
    import gpu_kernels

    texts = texts_of_dialect()
    kernels = sorted({rest for folder in folders for rest in gpu_kernels.texts(folder)[1]})
    found = []
    for rest in kernels:
        parts = parts_of(rest, texts)
        if parts is not None:
            found.append({"file": parts[2], "libraries": parts[1], "macros": parts[0]})
    if not found:
        sys.exit(f"cuda_kernels: no kernel of these texts in {', '.join(folders)}")
    found.sort(key=lambda k: (k["file"], k["macros"]))
    with open(LIST, "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(k) for k in found) + "\n]\n")
    print(f"cuda_kernels: {len(found)} kernels in {os.path.relpath(LIST)}")


def number_of(text):
    """FNV-1a, as the program has it."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def compile_image(nvcc, out, image, prelude, kernels, targets):
    source = [prelude]
    for number, rest in kernels:
        names = re.findall(r"^#define (\w+)", rest, re.MULTILINE)
        source.append(f"#define NAME kiln_{number:016x}\n{rest}\n#undef NAME\n")
        source.extend(f"#undef {name}\n" for name in names)
    path = os.path.join(out, f"image_{image}.cu")
    with open(path, "w") as file:
        file.write("".join(source))
    command = [nvcc, "-std=c++17", "-fmad=false", "-w", "-fatbin", "-o", path[:-3] + ".fatbin", path]
    for target in targets:
        command += ["-gencode", target]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"cuda_kernels: {path} does not compile:\n{run.stderr[-4000:]}")


def make(out, nvcc):
    texts = texts_of_dialect()
    with open(LIST) as file:
        kernels = json.load(file)
    os.makedirs(os.path.join(out, "texts"), exist_ok=True)
    numbered = {}
    hopper = set()
    for kernel in kernels:
        rest = kernel["macros"] + "".join(texts[name] for name in kernel["libraries"])
        rest += texts[kernel["file"]]
        whole = texts["prelude"] + HEAD + rest
        number = number_of(whole)
        numbered[number] = rest
        if HOPPER & set(kernel["libraries"]):
            hopper.add(number)
        with open(os.path.join(out, "texts", f"{number:016x}.k"), "w") as file:
            file.write(whole)
    images = [[] for _ in range(IMAGES + 1)]
    targets = [TARGETS] * IMAGES + [HOPPER_TARGETS]
    where = {}
    for i, number in enumerate(sorted(numbered)):
        where[number] = IMAGES if number in hopper else i % IMAGES
        images[where[number]].append((number, numbered[number]))
    every = range(len(images))
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(lambda i: compile_image(nvcc, out, i, texts["prelude"], images[i], targets[i]),
                      every))  # fmt: skip
    lines = ["// Made by script/cuda_kernels.py.", '#include "kiln/backend/gpu/runtime/cuda_images.h"', ""]
    for i in every:
        path = os.path.abspath(os.path.join(out, f"image_{i}.fatbin"))
        lines.append(f'asm(".section .rodata\\n.balign 64\\nkiln_image_{i}:\\n.incbin \\"{path}\\"\\n.previous");')
        lines.append(f'extern "C" __attribute__((visibility("hidden"))) const char kiln_image_{i}[];')
    lines.append("namespace {")
    lines.append("constexpr kiln::gpu::CudaImages::Kernel kAll[] = {")
    lines += [f"    {{0x{number:016x}u, {where[number]}}}," for number in sorted(where)]
    lines.append("};")
    names = ", ".join(f"kiln_image_{i}" for i in every)
    lines.append(f"const void* const kImages[] = {{{names}}};")
    lines.append(f"constexpr kiln::gpu::CudaImages kTable = {{kImages, kAll, {len(where)}}};")
    lines.append("}  // namespace")
    lines.append('extern "C" const kiln::gpu::CudaImages* kiln_cuda_images() { return &kTable; }')
    with open(os.path.join(out, "images.cpp"), "w") as file:
        file.write("\n".join(lines) + "\n")
    print(f"cuda_kernels: {len(where)} kernels in {len(images)} images")


if __name__ == "__main__":
    if sys.argv[1:2] == ["list"] and len(sys.argv) >= 3:
        make_list(sys.argv[2:])
    elif sys.argv[1:2] == ["make"] and len(sys.argv) == 4:
        make(sys.argv[2], sys.argv[3])
    else:
        sys.exit(__doc__)
