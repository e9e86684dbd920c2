"""Differentiable functions with inverses and log changes of volume, for TransformedDistribution."""

from ._joined_transforms import (
    CatTransform,
    CumulativeDistributionTransform,
    StackTransform,
)
from ._made_transforms import ComposeTransform, IndependentTransform, ReshapeTransform
from ._scalar_transforms import (
    AbsTransform,
    AffineTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    SoftplusTransform,
    TanhTransform,
)
from ._transform import Transform
from ._vector_transforms import (
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    SoftmaxTransform,
    StickBreakingTransform,
)

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]

identity_transform = ComposeTransform([])
identity_transform.__doc__ = """y = x, for x of any shape.

>>> kiln.distributions.identity_transform(kiln.tensor(2.))
tensor(2.)
"""
