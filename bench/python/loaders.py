"""How many samples a second loaders give: Kiln beside PyTorch, at equal numbers of workers.

    script/bench loaders [--workers 2] [--rows jpeg_folder,tensors]

jpeg_folder     photographs of 400x300, a random part of each at 224x224, mirrored half of the time,
                batches of 32. PyTorch's side decodes and resizes with Pillow, as torchvision's folder does
csv, parquet    a table of 20 columns of numbers, opened and read once in shuffled batches of 256.
                PyTorch's side reads it with pyarrow into tensors
tensors         shuffled batches of 64 from tensors in memory

Samples in a second over the whole of an epoch, opening included; the best of three.
"""

import argparse
import io
import pathlib
import tempfile
import time

import numpy as np

ROUNDS = 3
SIDE = 224


def best_rate(samples, epoch):
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        found = epoch()
        times.append(time.perf_counter() - start)
        assert found == samples, (found, samples)
    return samples / min(times)


# ---- Photographs


def draw_photos(folder, count):
    from PIL import Image

    rng = np.random.default_rng(0)
    y, x = np.mgrid[0:300, 0:400]
    for i in range(count):
        place = folder / f"class{i % 4}"
        place.mkdir(exist_ok=True)
        waves = [np.sin(x / a + c) * np.cos(y / b) for a, b, c in rng.uniform(5, 40, (3, 3))]
        noise = rng.normal(0, 6, (300, 400, 3))
        pixels = (np.stack(waves, -1) * 90 + 128 + noise).clip(0, 255).astype(np.uint8)
        out = io.BytesIO()
        Image.fromarray(pixels).save(out, "JPEG", quality=85)
        (place / f"{i}.jpg").write_bytes(out.getvalue())


def kiln_photos(folder, workers):
    import kiln
    from kiln.utils import data
    from kiln.vision import transforms as T

    augment = T.Compose([T.RandomResizedCrop(SIDE), T.RandomHorizontalFlip(), T.ToDtype(kiln.float32, scale=True)])
    loader = data.DataLoader(
        data.ImageFolder(folder, transform=augment), batch_size=32, shuffle=True, num_workers=workers
    )
    return sum(len(images) for images, _ in loader)


class TorchPhotos:
    def __init__(self, folder):
        self.paths = sorted(folder.glob("*/*.jpg"))
        names = sorted({p.parent.name for p in self.paths})
        self.labels = [names.index(p.parent.name) for p in self.paths]

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        import torch
        from PIL import Image

        with Image.open(self.paths[index]) as file:
            image = file.convert("RGB")
        width, height = image.size
        for _ in range(10):
            area = width * height * float(torch.empty(1).uniform_(0.08, 1))
            ratio = float(torch.empty(1).uniform_(np.log(3 / 4), np.log(4 / 3)).exp())
            w, h = round((area * ratio) ** 0.5), round((area / ratio) ** 0.5)
            if 0 < w <= width and 0 < h <= height:
                break
        else:
            w, h = width, height
        left = int(torch.randint(0, width - w + 1, (1,)))
        top = int(torch.randint(0, height - h + 1, (1,)))
        image = image.resize((SIDE, SIDE), Image.Resampling.BILINEAR, box=(left, top, left + w, top + h))
        if float(torch.rand(1)) < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        pixels = torch.from_numpy(np.asarray(image)).permute(2, 0, 1)
        return pixels.to(torch.float32).div(255), self.labels[index]


def torch_photos(folder, workers):
    from torch.utils import data

    loader = data.DataLoader(TorchPhotos(folder), batch_size=32, shuffle=True, num_workers=workers)
    return sum(len(images) for images, _ in loader)


def jpeg_folder(folder, workers):
    count = 512
    draw_photos(folder, count)
    return (
        best_rate(count, lambda: kiln_photos(folder, workers)),
        best_rate(count, lambda: torch_photos(folder, workers)),
    )


# ---- Tables

COLUMNS = [f"x{i}" for i in range(19)]


def table(count):
    import pyarrow

    rng = np.random.default_rng(0)
    columns = {name: rng.normal(size=count).round(4) for name in COLUMNS}
    columns["y"] = rng.integers(0, 10, count)
    return pyarrow.table(columns)


def torch_table(read):
    import torch
    from torch.utils import data

    rows = read()
    x = torch.from_numpy(np.stack([rows[name].to_numpy() for name in COLUMNS], 1)).float()
    y = torch.from_numpy(rows["y"].to_numpy().copy())
    loader = data.DataLoader(data.TensorDataset(x, y), batch_size=256, shuffle=True)
    return sum(len(batch) for batch, _ in loader)


def kiln_table(make):
    from kiln.utils import data

    loader = data.DataLoader(make(features=COLUMNS, target="y"), batch_size=256, shuffle=True)
    return sum(len(batch) for batch, _ in loader)


def csv(folder, workers):
    import pyarrow.csv

    from kiln.utils import data

    count, path = 50_000, folder / "a.csv"
    pyarrow.csv.write_csv(table(count), path)
    return (
        best_rate(count, lambda: kiln_table(lambda **o: data.CSVDataset(path, **o))),
        best_rate(count, lambda: torch_table(lambda: pyarrow.csv.read_csv(path))),
    )


def parquet(folder, workers):
    import pyarrow.parquet

    from kiln.utils import data

    count, path = 50_000, folder / "a.parquet"
    pyarrow.parquet.write_table(table(count), path)
    return (
        best_rate(count, lambda: kiln_table(lambda **o: data.ParquetDataset(path, **o))),
        best_rate(count, lambda: torch_table(lambda: pyarrow.parquet.read_table(path))),
    )


def tensors(folder, workers):
    import torch

    import kiln
    from kiln.utils import data as kiln_data

    count = 100_000
    x = np.random.default_rng(0).normal(size=(count, 32)).astype(np.float32)
    y = np.arange(count)

    def run(data, make):
        loader = data.DataLoader(data.TensorDataset(make(x), make(y)), batch_size=64, shuffle=True)
        return lambda: sum(len(batch) for batch, _ in loader)

    return (
        best_rate(count, run(kiln_data, kiln.from_numpy)),
        best_rate(count, run(torch.utils.data, torch.from_numpy)),
    )


ROWS = {"jpeg_folder": (jpeg_folder, 2), "csv": (csv, 1.5), "parquet": (parquet, 1.5), "tensors": (tensors, 3)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2, help="processes that decode photographs")
    parser.add_argument("--rows", default=",".join(ROWS), help="which rows")
    given = parser.parse_args()
    for name in given.rows.split(","):
        row, promise = ROWS[name]
        with tempfile.TemporaryDirectory() as folder:
            mine, theirs = row(pathlib.Path(folder), given.workers)
        print(
            f"{name:12} {mine:12,.0f} samples/s beside {theirs:12,.0f}: {mine / theirs:.2f} times"
            f" (promise: {promise:g})",
            flush=True,
        )


if __name__ == "__main__":
    main()
