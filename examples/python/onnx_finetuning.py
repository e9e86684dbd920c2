"""A model that came as an ONNX file is trained on, and goes back as one.

python examples/python/onnx_finetuning.py             makes a file first, as another program would
python examples/python/onnx_finetuning.py --model net.onnx     one that takes [N, 1, 16, 16] and
                                                                gives scores of four classes
"""

import argparse

import kiln
import kiln.onnx
from kiln import nn
from kiln.nn import functional as F

SIZE = 16


def pictures(n, dark):
    """n pictures of a bar, a column, a square or a cross, white on black; dark: black on grey."""
    kinds = kiln.randint(0, 4, (n,))
    images = kiln.zeros(n, 1, SIZE, SIZE)
    for image, kind in zip(images, kinds.tolist(), strict=True):
        y, x = (int(v) for v in kiln.randint(2, SIZE - 7, (2,)).tolist())
        if kind in (0, 3):
            image[0, y + 2, x : x + 5] = 1.0
        if kind in (1, 3):
            image[0, y : y + 5, x + 2] = 1.0
        if kind == 2:
            image[0, y : y + 5, x : x + 5] = 1.0
    if dark:
        images = 0.6 - 0.6 * images
    return images + 0.1 * kiln.randn(n, 1, SIZE, SIZE), kinds


def train(model, parameters, dark, steps, batch=64, rate=3e-3):
    """The loss of the last step."""
    optimizer = kiln.optim.AdamW(parameters, lr=rate)
    for _ in range(steps):
        images, kinds = pictures(batch, dark)
        loss = F.cross_entropy(model(images), kinds)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss)


def right(model, dark):
    """Per cent of new pictures that the model names."""
    images, kinds = pictures(400, dark)
    with kiln.no_grad():
        return 100.0 * float((model(images).argmax(1) == kinds).float().mean())


def another_programs_file(path, steps):
    """A small network that knows white shapes on black, as an ONNX file."""
    net = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 4),
    )
    train(net, net.parameters(), dark=False, steps=steps)
    axes = {"image": {0: "batch"}}
    example = kiln.randn(2, 1, SIZE, SIZE)
    kiln.onnx.export(net, example, path, input_names=["image"], dynamic_axes=axes)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="an ONNX file (default: one is made)")
    parser.add_argument("--steps", type=int, default=600)
    args = parser.parse_args()
    kiln.manual_seed(0)
    if args.model is None:
        args.model = "shapes.onnx"
        another_programs_file(args.model, args.steps)

    model = kiln.onnx.load(args.model)  # a module: its weights are parameters
    print(f"{args.model}: {sum(p.numel() for p in model.parameters())} weights")
    print(f"white on black: {right(model, dark=False):.0f} %, "
          f"black on grey: {right(model, dark=True):.0f} % right")

    # First the last layer alone, then everything with smaller steps.
    last = list(model.parameters())[-2:]
    loss = train(model, last, dark=True, steps=args.steps // 3)
    print(f"the last layer trained: loss {loss:.2f}, {right(model, dark=True):.0f} % right")
    loss = train(model, list(model.parameters()), dark=True, steps=args.steps)
    print(f"all layers trained: loss {loss:.2f}, {right(model, dark=True):.0f} % right")

    axes = {"image": {0: "batch"}}
    example = kiln.randn(2, 1, SIZE, SIZE)
    kiln.onnx.export(model, example, "tuned.onnx", input_names=["image"], dynamic_axes=axes)
    tuned = kiln.onnx.load("tuned.onnx")
    images, _ = pictures(5, dark=True)
    with kiln.no_grad():
        assert kiln.allclose(tuned(images), model(images), atol=1e-5)
    print("wrote tuned.onnx")


if __name__ == "__main__":
    main()
