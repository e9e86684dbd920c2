"""inspect.signature of the functions of the compiled module."""

import inspect

import kiln

P = inspect.Parameter


def test_a_function():
    signature = inspect.signature(kiln.matmul)
    assert str(signature) == "(input: Tensor, other: Tensor) -> Tensor"
    bound = signature.bind(kiln.ones(2), other=kiln.ones(2))
    assert set(bound.arguments) == {"input", "other"}


def test_defaults_and_keywords_of_a_method():
    parameters = inspect.signature(kiln.Tensor.sum).parameters
    assert list(parameters) == ["self", "dim", "keepdim", "dtype"]
    assert parameters["dim"].default is None
    assert parameters["keepdim"].default is False
    assert parameters["dtype"].kind is P.KEYWORD_ONLY


def test_a_bound_method_has_no_self():
    parameters = inspect.signature(kiln.ones(2).sum).parameters
    assert list(parameters) == ["dim", "keepdim", "dtype"]


def test_any_number_of_arguments():
    parameters = inspect.signature(kiln.zeros).parameters
    assert parameters["size"].kind is P.VAR_POSITIONAL
    assert parameters["requires_grad"].default is False


def test_every_public_function_has_one():
    without = []
    spaces = [kiln, kiln.Tensor, kiln.nn.functional, kiln.linalg, kiln.fft, kiln.special]
    for space in spaces:
        for name in dir(space):
            value = getattr(space, name)
            if name.startswith("_") or not type(value).__name__.startswith("nb_"):
                continue
            try:
                inspect.signature(value)
            except (ValueError, TypeError):
                if type(value).__name__ in ("nb_func", "nb_method"):
                    without.append(f"{space.__name__}.{name}")
    assert without == []
