"""Denoising diffusion learns to draw rings, crosses and squares, and writes a picture of its own.

python examples/python/diffusion_shapes.py --minutes 3
"""

import argparse
import struct
import time
import zlib

import numpy as np

import kiln
from kiln.models import DDPMUNet, GaussianDiffusion

SIZE = 16


def shapes(count, rng):
    """Rings, crosses and squares of any size and place: [count, 1, SIZE, SIZE], from -1 to 1."""
    y, x = np.mgrid[:SIZE, :SIZE]
    centre = rng.uniform(6, 10, (count, 2, 1, 1))
    radius = rng.uniform(3, 5, (count, 1, 1))
    dy, dx = abs(y - centre[:, 0]), abs(x - centre[:, 1])
    ring = abs(np.hypot(dy, dx) - radius)
    cross = np.where(np.maximum(dy, dx) <= radius, np.minimum(dy, dx), 3)
    square = abs(np.maximum(dy, dx) - radius)
    kind = rng.integers(0, 3, count)
    distance = np.choose(kind[:, None, None], [ring, cross, square])
    image = np.clip(1.5 - distance, 0, 1) * 2 - 1
    return kiln.from_numpy(image[:, None].astype(np.float32))


def write_png(path, image):
    """image [height, width] of bytes, as a gray PNG."""
    height, width = image.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), image], 1).tobytes()
    chunks = {
        b"IHDR": struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0),
        b"IDAT": zlib.compress(rows),
        b"IEND": b"",
    }
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        for name, body in chunks.items():
            checksum = struct.pack(">I", zlib.crc32(name + body))
            file.write(struct.pack(">I", len(body)) + name + body + checksum)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--steps", type=int, default=10**9, help="stop after so many")
    parser.add_argument("--out", default="shapes.png")
    options = parser.parse_args()

    kiln.manual_seed(0)
    rng = np.random.default_rng(0)
    model = DDPMUNet(
        ch=32,
        in_channels=1,
        out_ch=1,
        ch_mult=(1, 2, 2),
        num_res_blocks=1,
        attn_resolutions=(4,),
        resolution=SIZE,
        dropout=0.0,
    )
    diffusion = GaussianDiffusion(200, beta_schedule="cosine")
    optimizer = kiln.optim.Adam(model.parameters(), lr=1e-3)
    average = kiln.optim.swa_utils.AveragedModel(
        model, multi_avg_fn=kiln.optim.swa_utils.get_ema_multi_avg_fn(0.995)
    )
    start, step, recent = time.monotonic(), 0, None
    while step < options.steps and time.monotonic() - start < 60 * options.minutes:
        loss = diffusion.loss(model, shapes(32, rng))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update_parameters(model)
        step += 1
        recent = loss.item() if recent is None else 0.98 * recent + 0.02 * loss.item()
        if step % 100 == 0:
            print(f"step {step}  {time.monotonic() - start:.0f} s  loss {recent:.4f}", flush=True)
    images = diffusion.sample(average.module.eval(), (64, 1, SIZE, SIZE), steps=50, eta=0.5)
    grid = images.reshape(8, 8, SIZE, SIZE).permute(0, 2, 1, 3).reshape(8 * SIZE, 8 * SIZE)
    pixels = ((grid + 1) * 127.5).clamp(0, 255).numpy().astype(np.uint8)
    write_png(options.out, np.kron(pixels, np.ones((4, 4), np.uint8)))
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
