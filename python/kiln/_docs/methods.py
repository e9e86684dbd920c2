"""Docstrings of the functions that kiln/_names.py makes of methods."""

# The tensor, the other arguments, the result.
_EXAMPLES = """
abs_ | -1., 2. | | 1., 2.
acos_ | 1. | | 0.
acosh_ | 1. | | 0.
addmv_ | 1., 1. | kiln.eye(2), kiln.tensor([3., 4.]) | 4., 5.
arccos_ | 1. | | 0.
arccosh_ | 1. | | 0.
arcsin_ | 0. | | 0.
arcsinh_ | 0. | | 0.
arctan_ | 0. | | 0.
arctanh_ | 0. | | 0.
asin_ | 0. | | 0.
asinh_ | 0. | | 0.
atan_ | 0. | | 0.
atanh_ | 0. | | 0.
ceil_ | 1.2, 2. | | 2., 2.
clamp_ | 1., 7. | 2, 5 | 2., 5.
clamp_max_ | 1., 7. | 5 | 1., 5.
clamp_min_ | 1., 7. | 2 | 2., 7.
clip_ | 1., 7. | 2, 5 | 2., 5.
conj_physical_ | 1+2j | | 1.-2.j
cos_ | 0. | | 1.
cosh_ | 0. | | 1.
deg2rad_ | 0. | | 0.
detach_ | 1., 2. | | 1., 2.
erf_ | 0. | | 0.
erfc_ | 0. | | 1.
exp2_ | 0., 3. | | 1., 8.
exp_ | 0. | | 1.
expm1_ | 0. | | 0.
fill_ | 1., 2. | 7 | 7., 7.
fix_ | 1.7, 2. | | 1., 2.
floor_ | 1.7, 2. | | 1., 2.
frac_ | 1.5 | | 0.5000
gcd_ | 12, 7 | kiln.tensor([18, 3]) | 6, 1
i0_ | 0. | | 1.
index_put_ | 1., 2. | (kiln.tensor([1]),), kiln.tensor(5.) | 1., 5.
lcm_ | 4, 7 | kiln.tensor([6, 3]) | 12, 21
ldexp_ | 1., 3. | kiln.tensor([2, 1]) | 4., 6.
log10_ | 1., 1000. | | 0., 3.
log1p_ | 0. | | 0.
log2_ | 1., 8. | | 0., 3.
log_ | 1. | | 0.
logit_ | 0.5 | | 0.
nan_to_num_ | float("nan"), 1. | | 0., 1.
neg_ | 1., 2. | | -1., -2.
negative_ | 1., 2. | | -1., -2.
rad2deg_ | 0. | | 0.
reciprocal_ | 1., 2. | | 1.0000, 0.5000
relu_ | -1., 2. | | 0., 2.
round_ | 1.7, 2. | | 2., 2.
rsqrt_ | 1., 4. | | 1.0000, 0.5000
sigmoid_ | 0. | | 0.5000
sin_ | 0. | | 0.
sinc_ | 0. | | 1.
sinh_ | 0. | | 0.
sqrt_ | 4., 9. | | 2., 3.
square_ | 2., 3. | | 4., 9.
tan_ | 0. | | 0.
tanh_ | 0. | | 0.
trunc_ | 1.7, 2. | | 1., 2.
xlogy_ | 0., 2. | kiln.tensor([0., 1.]) | 0., 0.
zero_ | 1., 2. | | 0., 0.
get_device | 1. | | : -1
int_repr | kiln.quantize(kiln.tensor([[1., 127.]])) | | : tensor([[  1, 127]], dtype=kiln.int8)
is_conj | 1j | | : False
is_inference | 1. | | : False
is_neg | 1. | | : False
narrow_copy | 1, 2, 3 | 0, 1, 2 | 2, 3
nonzero_static | 0, 7 | size=1 | [1]
"""
_ROWS = {
    name: rest
    for name, *rest in (
        [part.strip() for part in line.split("|")] for line in _EXAMPLES.strip().splitlines()
    )
}


def docstring_of(method: str) -> str:
    """The docstring of a function that is a method."""
    given, rest, result = _ROWS[method]
    first = given if given.startswith("kiln.") else f"kiln.tensor([{given}])"
    call = f"kiln.{method}({first}{', ' if rest else ''}{rest})"
    shown = result[2:] if result.startswith(": ") else f"tensor([{result}])"
    return f"As the method Tensor.{method}.\n\n>>> {call}\n{shown}\n"
