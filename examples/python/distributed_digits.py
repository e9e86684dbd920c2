"""Several processes train one network on digits, each on its own part of every batch. The digits are
drawn here, from seven segments with noise.

    python examples/python/distributed_digits.py    # one process
    python -m kiln.distributed.run --nproc-per-node 2 examples/python/distributed_digits.py
"""

import argparse
import os

import kiln
from kiln import distributed as dist, nn
from kiln.utils import data

# Row, column, height and width of the segments; and which of them each digit has.
SEGMENTS = [(2, 3, 2, 6), (3, 2, 5, 2), (3, 8, 5, 2), (7, 3, 2, 6), (8, 2, 5, 2), (8, 8, 5, 2)]
SEGMENTS += [(12, 3, 2, 6)]
LIT = "1110111 0010010 1011101 1011011 0111010 1101011 1101111 1010010 1111111 1111011".split()


def digits(count):
    """Images [count, 1, 16, 12] and what they show."""
    shown = kiln.randint(0, 10, (count,))
    shapes = kiln.zeros(10, 16, 12)
    for digit, lit in enumerate(LIT):
        for on, (row, column, height, width) in zip(lit, SEGMENTS):
            if on == "1":
                shapes[digit, row : row + height, column : column + width] = 1
    return shapes[shown][:, None] + 0.5 * kiln.randn(count, 1, 16, 12), shown


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--epochs", type=int, default=3)
options = parser.parse_args()

os.environ.setdefault("RANK", "0")  # not launched: a group of one process
os.environ.setdefault("WORLD_SIZE", "1")
dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()

kiln.manual_seed(0)  # every process draws the same digits, and takes its part of them
train, test = data.TensorDataset(*digits(4000)), data.TensorDataset(*digits(1000))
sampler = data.DistributedSampler(train)
loader = data.DataLoader(train, batch_size=64 // size, sampler=sampler)
model = nn.parallel.DistributedDataParallel(
    nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 7 * 5, 10)
    )
)
optimizer = kiln.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(options.epochs):
    sampler.set_epoch(epoch)
    for images, shown in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), shown)
        loss.backward()
        optimizer.step()
    mean = loss.detach().clone()
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    if rank == 0:
        print(f"epoch {epoch + 1}: loss {mean.item():.3f}")

# Each process reads its part of the new digits; the counts are added up.
images, shown = test[rank::size]
with kiln.no_grad():
    right = (model(images).argmax(1) == shown).sum()
dist.all_reduce(right)
if rank == 0:
    print(f"{size} ranks: {100 * right.item() / len(test):.1f} % of new digits are right")
dist.destroy_process_group()
