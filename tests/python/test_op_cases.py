"""Every op case: the Python package gives what C++ gives, and both what PyTorch gives."""

import ast
import inspect
import os

import pytest

import kiln
from conftest import HAS_TORCH
from op_cases import PROGRAM, TOLERANCE, Table, as_tensor, compare, evaluate

if not os.path.exists(PROGRAM):
    pytest.skip(f"SKIPPED: {PROGRAM} is not built", allow_module_level=True)

TABLE = Table()
EACH = pytest.mark.parametrize(
    "case", TABLE.cases, ids=[f"{c['number']}-{c['name']}" for c in TABLE.cases]
)


def run(case, dtype, library):
    return evaluate(case, TABLE.inputs(case, dtype, library), library)


def of_cpp(case, dtype):
    i = case["dtypes"].index(dtype)
    return [TABLE.tensor(case, dtype, "out", k) for k in range(case["results"][i])]


def tolerance(case, dtype):
    return TOLERANCE.get(dtype, 0) * case["rtol_factor"]


@EACH
def test_python_gives_what_cpp_gives(case):
    for dtype in case["dtypes"]:
        compare(
            run(case, dtype, kiln),
            of_cpp(case, dtype),
            tolerance(case, dtype),
            bool(case["shape_only_why"]),
        )


def without(error):
    """Whether PyTorch says that it has no such kernel on the CPU."""
    text = str(error)
    words = ("not implemented for", "not support", "Not implemented", "is not implemented")
    # It writes over what its own gradient of vander needs.
    words += ("modified by an inplace operation",)
    # Nor has its scatter_add one where the source is larger than the index.
    words += ("returned an invalid gradient",)
    return any(word in text for word in words)


def gradients(case, library):
    dtype = case["dtypes"][0]
    inputs = TABLE.inputs(case, dtype, library)
    leaves = [x for x, kind in zip(inputs, case["inputs"]) if kind in ("real", "complex")]
    for x in leaves:
        x.requires_grad_()
    total = 0
    for i, y in enumerate(evaluate(case, inputs, library)):
        y = library.view_as_real(y.resolve_conj()) if y.is_complex() else y
        if y.is_floating_point():
            weight = as_tensor(TABLE.tensor(case, dtype, "weight", i), library)
            total = total + (y.double() * weight).sum()
    grads = library.autograd.grad(total, leaves, allow_unused=True)
    return [library.zeros_like(x) if g is None else g for g, x in zip(grads, leaves)]


@pytest.mark.skipif(not HAS_TORCH, reason="SKIPPED: PyTorch is not installed")
@EACH
def test_pytorch_gives_the_same(case):
    import torch

    if case["peer_why"]:
        return  # a deviation; docs/tensor-ops.md lists them with their reasons
    compared = 0
    for dtype in case["dtypes"]:
        try:
            expected = run(case, dtype, torch)
        except (RuntimeError, NotImplementedError, ValueError) as error:
            if not without(error):
                raise
            continue
        compare(
            of_cpp(case, dtype), expected, tolerance(case, dtype), bool(case["shape_only_why"])
        )
        compared += 1
    assert compared, "PyTorch has this op in none of the dtypes"
    # PyTorch has no gradients of its orthogonal polynomials.
    if case["gradients"] and "polynomial" not in case["name"]:
        count = sum(kind in ("real", "complex") for kind in case["inputs"])
        got = [TABLE.tensor(case, case["dtypes"][0], "grad", i) for i in range(count)]
        try:
            expected = gradients(case, torch)
        except (RuntimeError, NotImplementedError) as error:
            if not without(error):
                raise
        else:
            compare(got, expected, 1e-9 * case["rtol_factor"])


# ---- Every public op has a case

# What is no op on values: tested in the other files of this folder.
NO_OPS = {
    # asking and setting
    "allclose", "as_tensor", "asarray", "backward", "can_cast", "capture", "compiled_with_cxx11_abi", "cpu",
    "cuda", "data_ptr", "default_generator", "detach", "device", "dim", "element_size", "empty_cache",
    "equal", "finfo", "frombuffer", "from_dlpack", "from_numpy", "get_default_dtype", "get_device",
    "get_num_threads", "get_rng_state", "gradients", "has_names", "iinfo", "initial_seed", "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled", "is_complex", "is_conj", "is_contiguous", "is_floating_point", "is_grad_enabled",
    "is_nonzero", "is_same", "is_same_size", "is_set_to", "is_shared", "is_signed", "is_storage", "is_tensor", "item", "load", "load_graph",
    "manual_seed", "memory_limit", "memory_stats", "set_memory_limit", "ndimension", "nelement", "new_tensor", "numel", "numpy", "promote_types",
    "register_hook", "register_post_accumulate_grad_hook", "requires_grad_", "reset_memory_stats",
    "result_type", "retain_grad", "save", "seed", "set_default_dtype", "set_num_threads", "set_printoptions",
    "set_rng_state", "set_winograd_enabled", "winograd_enabled", "share_memory_", "size", "storage_offset", "stride", "to_dlpack", "tolist", "type",
    "untyped_storage", "storage", "broadcast_shapes", "fork_rng",
    # casts by name, which are to()
    "bfloat16", "bool", "byte", "cdouble", "cfloat", "char", "double", "float", "half", "int", "long",
    "short", "type_as", "to",
    # parts of quantized tensors: test_quantization.py
    "int_repr", "make_quantized", "quant_scheme", "quantized_scales", "quantized_values",
    # kinds of tensors, and settings: test_names.py
    "are_deterministic_algorithms_enabled", "dim_order", "get_float32_matmul_precision", "is_inference",
    "is_inference_mode_enabled", "is_pinned", "pin_memory", "set_float32_matmul_precision",
    "set_flush_denormal", "to_dense", "typename", "use_deterministic_algorithms",
    "get_default_device", "get_deterministic_debug_mode", "get_num_interop_threads",
    "is_deterministic_algorithms_warn_only_enabled", "set_default_device",
    "set_deterministic_debug_mode", "set_num_interop_threads",
    # Python functions of each element: test_names.py
    "apply_", "map_",
    # memory without values
    "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided",
}  # fmt: skip


# Other names of the same function, and forms of it.
ALIASES = {
    "multiply": "mul", "divide": "div", "true_divide": "div", "subtract": "sub", "greater": "gt",
    "greater_equal": "ge", "less": "lt", "less_equal": "le", "not_equal": "ne", "inverse": "inv",
    "pinverse": "pinv", "orgqr": "householder_product", "triangular_solve": "solve_triangular",
    "ldl_factor_ex": "ldl_factor", "lu_factor_ex": "lu_factor", "hfft2": "hfftn", "ihfft2": "ihfftn",
    "max_pool1d_with_indices": "max_pool1d", "max_pool2d_with_indices": "max_pool2d",
    "max_pool3d_with_indices": "max_pool3d",
    "fractional_max_pool2d_with_indices": "fractional_max_pool2d",
    "fractional_max_pool3d_with_indices": "fractional_max_pool3d", "adaptive_max_pool1d_with_indices": "adaptive_max_pool1d",
    "adaptive_max_pool2d_with_indices": "adaptive_max_pool2d",
    "adaptive_max_pool3d_with_indices": "adaptive_max_pool3d", "conj_physical": "conj",
    "split_with_sizes": "split", "absolute": "abs", "arccos": "acos", "arccosh": "acosh",
    "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan", "arctanh": "atanh", "arctan2": "atan2",
    "clip": "clamp", "fix": "trunc", "negative": "neg", "concat": "cat", "concatenate": "cat",
    "swapdims": "transpose", "trapz": "trapezoid",
}  # fmt: skip
# Random numbers have their moments tested in test_random.py.
NO_OPS |= {"rand_like", "randn_like", "rand", "randn", "randint", "randperm", "dropout", "is_neg", "resolve_neg"}
# They take functions: test_vmap.py, test_compile.py.
NO_OPS |= {"vmap", "compile"}
# Made of others; tests/python/test_attention.py runs them beside PyTorch's.
NO_OPS |= {"grouped_mm", "multi_head_attention_forward"}
# The settings of autocast: test_autocast.py.
NO_OPS |= {
    "autocast_decrement_nesting", "autocast_increment_nesting", "clear_autocast_cache", "get_autocast_dtype",
    "is_autocast_cache_enabled", "is_autocast_enabled", "set_autocast_cache_enabled", "set_autocast_dtype",
    "set_autocast_enabled",
}  # fmt: skip
# kiln.Tensor's values: test_older_calls.py, test_autograd.py.
NO_OPS |= {"new", "as_subclass"}
# Sparse tensors: test_sparse.py.
NO_OPS |= {
    "coalesce", "col_indices", "crow_indices", "dense_dim", "indices", "is_coalesced", "sparse_coo_tensor",
    "sparse_csr_tensor", "sparse_dim", "sparse_mask", "to_sparse", "to_sparse_coo", "to_sparse_csr", "values",
}  # fmt: skip
# Their results are determined up to signs and rounding: test_names.py.
NO_OPS |= {"pca_lowrank", "svd_lowrank"}


def attribute_path(node):
    if isinstance(node, ast.Attribute):
        base = attribute_path(node.value)
        return base and f"{base}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else None


def called_names():
    """Names that some case calls: "linalg.solve", and "Tensor.add_" for methods."""
    found = set()
    for case in TABLE.cases:
        for node in ast.walk(ast.parse(case["python"], mode="eval")):
            if not isinstance(node, ast.Attribute):
                continue
            path = attribute_path(node) or ""
            found.add("Tensor." + node.attr)
            if path.startswith("torch."):
                found.add(path.removeprefix("torch."))
            if path.startswith("F."):
                found.add("nn.functional." + path.removeprefix("F."))
    return found


def public_names():
    modules = {"": kiln, "nn.functional.": kiln.nn.functional, "linalg.": kiln.linalg}
    modules |= {"fft.": kiln.fft, "special.": kiln.special}
    for prefix, module in modules.items():
        for name, value in vars(module).items():
            if not name.startswith("_") and callable(value) and not inspect.isclass(value):
                yield prefix + name
    for name in dir(kiln.Tensor):
        if not name.startswith("_") and callable(getattr(kiln.Tensor, name)):
            yield "Tensor." + name


def test_every_op_has_a_case():
    """A name counts where it is called as a function, or, being both, as a method."""
    called = called_names()
    # Aliases are the same objects or bound from the same function.
    last = {name.split(".")[-1] for name in called}
    documented = {doc_of(name): name for name in called if doc_of(name)}
    missing = []
    for name in public_names():
        short = name.split(".")[-1]
        plain = short.removesuffix("_")  # test_in_place_methods_agree_with_the_plain_ones
        known = {short, plain, ALIASES.get(short), ALIASES.get(plain)} & (last | NO_OPS)
        if name not in called and not known and doc_of(name) not in documented:
            missing.append(name)
    assert not missing, f"{len(missing)} ops without a case: {' '.join(sorted(missing))}"


def doc_of(name):
    """What an op says of itself: aliases say the same."""
    value = kiln
    for part in name.split("."):
        value = getattr(value, part, None)
    return (value.__doc__ or "").split("\n\n", 1)[-1] if value is not None else ""
