"""The interpreter ends cleanly whatever is still alive."""

import subprocess
import sys

SCRIPT = """
import threading
import numpy as np
import kiln
from kiln import nn

shared = kiln.from_numpy(np.ones(10))[2:]
capsule = shared.__dlpack__()
x = kiln.ones(3, requires_grad=True)
y = x * 2
y.register_hook(lambda g: g)
m = nn.Linear(3, 3)
m.me = [m]
m.register_forward_hook(lambda *a: None)
m.register_full_backward_hook(lambda *a: None)
nn.register_module_forward_hook(lambda *a: None)
net = nn.CppModule(kiln._C._cpp_sequential([m, nn.ReLU()]))
out = net(x)
schedule = kiln.optim.lr_scheduler.StepLR(kiln.optim.Adam(m.parameters()), 1)


def work():
    while True:
        (x * x).sum().gradients()


threading.Thread(target=work, daemon=True).start()
print("end")
"""


def test_exit_with_everything_alive():
    for _ in range(5):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0 and done.stdout == "end\n" and done.stderr == "", done
