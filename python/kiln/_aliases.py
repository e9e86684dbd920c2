"""Other names of dtypes. They hide Python's own types, so they have a file of their own."""

from ._C import bool_ as bool  # noqa: F401
from ._C import complex64 as cfloat  # noqa: F401
from ._C import complex128 as cdouble  # noqa: F401
from ._C import float16 as half  # noqa: F401
from ._C import float32 as float  # noqa: F401
from ._C import float64 as double  # noqa: F401
from ._C import int16 as short  # noqa: F401
from ._C import int32 as int  # noqa: F401
from ._C import int64 as long  # noqa: F401

__all__ = ["bool", "cdouble", "cfloat", "double", "float", "half", "int", "long", "short"]
