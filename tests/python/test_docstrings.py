"""Every public name has a docstring; those of functions and classes have an example, and it is true."""

import doctest
import functools
import importlib
import inspect
import pathlib
import pkgutil
import re
import shutil
import subprocess
import sys
import types

import pytest

import kiln
from kiln._docs import entries, reading

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "script"))
import reference_python  # noqa: E402

# What is left of the rule that a function has an example: in them every answer is one word, which the
# docstring says (kiln.cuda.is_available is False), and nothing is computed.
WITHOUT_EXAMPLES = ("kiln.cuda", "kiln.backends")
# At most so many arguments are in no docstring; lower it when there are fewer.
UNNAMED_ARGUMENTS = 670


def modules():
    """All public modules of the package."""
    yield kiln
    for info in pkgutil.walk_packages(kiln.__path__, "kiln."):
        parts = info.name.split(".")
        if any(part.startswith("_") for part in parts):
            continue
        yield importlib.import_module(info.name)


def is_ours(value):
    module = getattr(value, "__module__", None) or ""
    return module.partition(".")[0] == "kiln"


@functools.cache
def public():
    """name -> object: the functions and classes of all modules, each under its first name."""
    found, seen = {}, {}
    for module in modules():
        names = getattr(module, "__all__", None) or dir(module)
        for name in names:
            value = getattr(module, name, None)
            if name.startswith("_") or isinstance(value, types.ModuleType):
                continue
            if callable(value) and is_ours(value) and id(value) not in seen:
                seen[id(value)] = found[f"{module.__name__}.{name}"] = value
    return found


def members():
    """name -> object: the public methods and properties that classes define themselves."""
    found, seen = {}, set()
    for path, value in public().items():
        for base in value.__mro__ if inspect.isclass(value) else ():
            if not is_ours(base) or base in seen:
                continue
            seen.add(base)
            for name in vars(base):
                member = inspect.getattr_static(base, name)
                plain = isinstance(member, (property, functools.cached_property)) or callable(
                    getattr(base, name)
                )
                if plain and not name.startswith("_") and not inspect.isclass(member):
                    found[f"{base.__module__}.{base.__qualname__}.{name}"] = (base, name)
    return found


def doc_of_member(base, name):
    member = inspect.getattr_static(base, name)
    if isinstance(member, (property, functools.cached_property)):
        return member.__doc__ or ""
    # A method that replaces one that has words of its own may go without.
    return inspect.getdoc(getattr(base, name)) or ""


def words_of(text):
    """A docstring without the lines of its signatures."""
    lines = (text or "").strip().split("\n")
    while lines and re.match(r"\w*\(.*\)( -> .*)?$", lines[0]):
        del lines[0]
    return "\n".join(lines).strip()


def test_every_name_has_a_docstring():
    assert [path for path, value in public().items() if not words_of(value.__doc__)] == []


def test_every_method_and_property_has_a_docstring():
    without = [path for path, member in members().items() if not words_of(doc_of_member(*member))]
    assert without == []


def documented():
    """name -> object: what the pages of the site show."""
    for space, _ in reference_python.NAMESPACES:
        owner = reference_python.find(space)
        if inspect.ismodule(owner):
            for name, value in reference_python.members(owner):
                yield f"{space}.{name}", value


def test_every_function_and_class_of_the_pages_has_an_example():
    without = [path for path, value in documented() if ">>> " not in (value.__doc__ or "")]
    assert without == []


def unnamed_arguments(value):
    """Arguments that the words of a docstring do not name; without those that all functions share."""
    try:
        parameters = inspect.signature(value).parameters
    except (ValueError, TypeError):
        return []
    shared = "self args kwargs input x device dtype out layout pin_memory requires_grad memory_format generator"
    words = words_of(value.__doc__).partition(">>> ")[0]
    return [
        name
        for name in parameters
        if name not in shared.split() and name[0] != "_" and not re.search(rf"\b{name}\b", words)
    ]


def test_docstrings_name_their_arguments():
    """A number that may only fall."""
    assert sum(len(unnamed_arguments(value)) for _, value in documented()) <= UNNAMED_ARGUMENTS


def test_every_public_name_is_on_a_page():
    """Except those of WITHOUT_EXAMPLES, and of modules whose names stand in the package above them."""
    shown = {id(value) for _, value in documented()}
    spaces = {space for space, _ in reference_python.NAMESPACES}
    packages = [m.__name__ for m in modules() if hasattr(m, "__path__")]
    missing = [name for name in packages if name not in spaces and not name.startswith(WITHOUT_EXAMPLES)]
    # The packages that are not there hold modules of PyTorch's names, or nothing but parts.
    hooks = {"kiln.distributed.algorithms", "kiln.distributed.algorithms.ddp_comm_hooks"}
    assert set(missing) <= {"kiln.nn.modules", "kiln.nn.finetuning", "kiln.utils", *hooks}
    assert len(shown) > 1200


def test_entries_belong_to_names():
    """No entry of the text files is left over."""
    lost = []
    for name in entries.entries():
        for path in (f"kiln.{name}", f"kiln._C.{name}", f"kiln._C._{name}"):
            try:
                pkgutil.resolve_name(path)
                break
            except (ImportError, AttributeError):
                pass
        else:
            lost.append(name)
    assert lost == []


def texts():
    """name -> docstring with an example, of all functions, classes and methods."""
    found = {path: value.__doc__ or "" for path, value in public().items()}
    found |= {path: doc_of_member(*member) or "" for path, member in members().items()}
    return {path: text for path, text in found.items() if ">>> " in text}


@pytest.fixture
def plain_state(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "tests" / "fixtures" / "pt2" / "net.pt2", tmp_path)
    kiln.manual_seed(0)
    yield
    kiln.set_default_dtype(kiln.float32)
    kiln.set_printoptions(profile="default")


def test_examples_print_what_they_say(plain_state):
    failed, count = [], 0
    parser, checker = doctest.DocTestParser(), doctest.OutputChecker()
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    for path, text in texts().items():
        kiln.manual_seed(0)
        scope = {"kiln": kiln, "nn": kiln.nn, "F": kiln.nn.functional, "Tensor": kiln.Tensor}
        test = parser.get_doctest(inspect.cleandoc(text), scope, path, None, 0)
        report = []
        runner = doctest.DocTestRunner(checker, verbose=False, optionflags=flags)
        result = runner.run(test, out=report.append, clear_globs=False)
        count += result.attempted
        if result.failed:
            failed.append("".join(report))
    assert not failed, f"{len(failed)} of {len(texts())}\n" + "\n".join(failed)
    assert count > 1500


def test_every_op_has_a_signature_a_formula_and_an_example():
    table = (ROOT / "docs" / "tensor-ops.md").read_text()
    ops = re.findall(r"^\| `([\w.]+)` \|", table, re.M)
    assert len(ops) > 600
    lacking = []
    for name in ops:
        is_method = "." not in name and not hasattr(kiln, name)
        value = pkgutil.resolve_name(f"kiln.{'Tensor.' if is_method else ''}{name}")
        signature, text = reference_python.signature_and_text(name.rpartition(".")[2], value)
        words = text.partition(">>> ")[0].strip()
        if "(...)" in signature or not words or ">>> " not in text:
            lacking.append(name)
    assert lacking == []


def test_the_page_of_all_ops_leads_to_them():
    linked = reference_python.op_links("| `abs` | f |\n| `linalg.inv` | f |\n| `Tensor.view` |", "reference")
    assert "| [`abs`](reference/kiln.md#kiln.abs) |" in linked
    assert "(reference/kiln.linalg.md#kiln.linalg.inv)" in linked
    assert "(reference/kiln.Tensor.md#kiln.Tensor.view)" in linked
    assert "## inv {#kiln.linalg.inv}" in reference_python.page("kiln.linalg", "")


def test_docstrings_of_other_libraries_stay():
    assert reading.name_of(types.SimpleNamespace(__module__="other", __qualname__="f")) is None


def test_importing_reads_no_texts():
    code = "import sys, kiln; assert 'kiln._docs.reading' not in sys.modules; kiln.abs.__doc__;"
    code += "assert 'kiln._docs.reading' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_docstring_is_put_together():
    text = kiln.add.__doc__
    assert text.startswith("add(input: Tensor")
    assert "alpha" in text and "broadcast" in text and ">>> kiln.add(" in text
    assert ">>> kiln.tensor([1., 2.]).add_(3, alpha=10)" in kiln.Tensor.add_.__doc__
    assert kiln.ones(1).add.__doc__ == kiln.Tensor.add.__doc__
    assert inspect.getdoc(kiln.nn.Linear).startswith("y = x W^T + b")
    assert ">>> F.relu6_(" in kiln.nn.functional.relu6_.__doc__


def test_a_method_made_of_a_function():
    example = entries.as_method(">>> kiln.f(kiln.g(1, [2]), 3)", "f", "f_")
    assert example == ">>> kiln.g(1, [2]).f_(3)"
    assert entries.as_method(">>> kiln.f(x)", "f", "f") == ">>> x.f()"


def test_pages_of_the_site_have_the_examples(tmp_path):
    for space in ("kiln", "kiln.linalg"):
        (tmp_path / f"{space}.md").write_text(reference_python.page(space, ""))
    text = (tmp_path / "kiln.linalg.md").read_text()
    assert "```pycon\n>>> kiln.linalg.inv(" in text
    every = (tmp_path / "kiln.md").read_text()
    assert every.count("```pycon") > 400
