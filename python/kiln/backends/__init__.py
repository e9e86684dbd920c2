"""torch.backends' names: what is asked has true answers, what is set is kept and changes nothing.

There are no other backends beneath Kiln's ops: products of float32 are computed in float32, and
results are the same on every run.
"""

from . import cuda, cudnn, mha, mkl, mkldnn, mps, openmp, opt_einsum

__all__ = ["cuda", "cudnn", "mha", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]
