"""The rows of `script/bench --compiled`: training, inference and science, compiled."""

from model_rows import Row

LENGTH = 128  # of texts

# Kinds: "train" and "infer" as in model_rows.py, "decode" too; "step" is a program of
# graph_programs.py that trains; "chain" a function of one tensor; "first" the first call of a
# compiled step, in seconds; "memory" the largest use of memory by a step,
# "lean" that with memory_budget 0.
GROUPS = {
    "training": [
        Row("step", "mlp", 64, 784, asked=1.25),
        Row("step", "cnn", 64, 28, asked=1.25),
        Row("train", "resnet18", 16, 64, asked=1.25),
        Row("train", "vit_tiny_16", 8, 224, asked=1.25),
        Row("step", "gpt", 8, LENGTH, asked=1.25),
        Row("step", "lstm", 16, 64, asked=1.25),
    ],
    "inference": [
        Row("infer", model, batch, size, asked=1.1)
        for model, size in (
            ("resnet18", 224),
            ("resnet50", 224),
            ("mobilenet_v3_large", 224),
            ("vit_tiny_16", 224),
            ("bert", LENGTH),
            ("gpt2", 64),
        )
        for batch in (1, 32)
    ]
    + [Row("decode", "gpt2", 1, 64, asked=1.1)],
    "low precision": [
        Row("infer", "resnet50", 1, 224, "bfloat16", asked=1.0),
        Row("infer", "vit_tiny_16", 1, 224, "bfloat16", asked=1.0),
        Row("infer", "bert", 1, LENGTH, "bfloat16", asked=1.0),
        Row("infer", "bert", 1, LENGTH, "int8", asked=1.0),
    ],
    "science": [
        Row("step", "pinn", 10000, 2, asked=1.5),
        Row("step", "potential", 16, 32, asked=1.5),
    ],
    "reinforcement learning": [Row("step", "sac", 256, 256, asked=2.0)],
    "chain": [Row("chain", "elementwise", 20, 1 << 24, asked=1.2)],
    "compile time": [Row("first", "resnet50", 4, 64, asked=20.0)],
    "memory": [
        Row("memory", "mlp", 64, 784),
        Row("memory", "gpt", 8, LENGTH),
        Row("memory", "cnn", 64, 28),
        Row("memory", "pinn", 10000, 2),
        Row("lean", "gpt", 8, LENGTH),
        Row("lean", "cnn", 64, 28),
    ],
}
# What the issue asks of a group's geometric mean.
MEANS = {"training": 1.6, "inference": 1.3}
MOST_MEMORY = 0.8  # of what the eager step takes
