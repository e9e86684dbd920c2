"""Weights move between PyTorch and Kiln: by a file, and without one where PyTorch is installed.

    python examples/python/weights_from_pytorch.py
"""

import kiln
from kiln import nn


def network(lib):
    """The same source makes a network of either library."""
    return lib.nn.Sequential(lib.nn.Linear(4, 8), lib.nn.ReLU(), lib.nn.Linear(8, 2))


net = network(kiln)
try:
    import torch
except ImportError:
    print("PyTorch is not installed; the file is Kiln's own")
    kiln.save(network(kiln).state_dict(), "weights.pt")
else:
    teacher = network(torch)
    torch.save(teacher.state_dict(), "weights.pt")

# A file of PyTorch's is read without PyTorch, and no code in it is executed.
net.load_state_dict(kiln.load("weights.pt"))
x = kiln.ones(1, 4)
print("Kiln    ", net(x).tolist())
if "teacher" in globals():
    print("PyTorch ", teacher(torch.ones(1, 4)).tolist())
    # Without a file: tensors share memory through NumPy.
    net.load_state_dict({k: kiln.from_numpy(v.numpy()) for k, v in teacher.state_dict().items()})
# And back: what Kiln saves, torch.load reads.
kiln.save(net.state_dict(), "back.pt")
nn.Module.load_state_dict(net, kiln.load("back.pt"))
print("moved there and back")
