"""A convolutional network reads digits, with everything written out: batches, gradients, steps.
The digits are drawn here, from seven segments with noise.

    python examples/python/digits_by_hand.py --epochs 3
"""

import argparse

import kiln
from kiln import nn

F = nn.functional
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
    images = shapes[shown][:, None] + 0.5 * kiln.randn(count, 1, 16, 12)
    return images, shown


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--epochs", type=int, default=3)
options = parser.parse_args()

kiln.manual_seed(0)
images, shown = digits(4000)
model = nn.Sequential(
    nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 7 * 5, 10)
)
parameters = list(model.parameters())
for epoch in range(options.epochs):
    for batch in kiln.randperm(len(images)).split(50):
        loss = F.cross_entropy(model(images[batch]), shown[batch])
        gradients = kiln.autograd.grad(loss, parameters)
        with kiln.no_grad():
            for parameter, gradient in zip(parameters, gradients):
                parameter -= 0.1 * gradient
    print(f"epoch {epoch + 1}: loss {loss.item():.3f}")
model.eval()
tests, right = digits(1000)
share = (model(tests).argmax(1) == right).float().mean().item()
print(f"{100 * share:.1f} % of new digits are right")
