"""The layers, each made from its row in kiln/nn/layers.def.

A layer is written once, in C++. What a class here has of its own is __init__, whose arguments are
the options of the C++ class; forward, extra_repr and the like are C++'s and read the module's
attributes each time (python/src/nn_layer_use.h says how).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _C
from .._docs import ClassDocstring
from .module import Module
from .module_hooks import registered, registration

if TYPE_CHECKING:
    from typing import Any


def _text(value):
    return "".join(f"={standard!r}" for standard in value)


def signature(row: dict[str, Any]) -> str:
    """The arguments of a row's constructor behind self, as source text."""
    if row["takes_anything"]:
        return "*args, **kwargs"
    positional = [name + _text(standard) for name, standard, _, later in row["options"] if not later]
    if row["has_parameters"]:
        positional += ["device=None", "dtype=None"]
    later = [name + _text(standard) for name, standard, _, later in row["options"] if later]
    return ", ".join(positional + (["*", *later] if later else []))


def _announce(layer):
    """Hands the parameters and buffers that C++ made to the hooks of registrations."""
    for kind, place in (("parameter", layer._parameters), ("buffer", layer._buffers)):
        if registration[kind]:
            for name, value in list(place.items()):
                if value is not None or kind == "buffer":
                    place[name] = registered(kind, layer, name, value)


def _constructor(index, row):
    """__init__ of a row's class, and the scope that it finds the class in. It is compiled, so that
    Python itself checks the arguments."""
    arguments = signature(row)
    given = "" if row["takes_anything"] else "".join(f"{name}, " for name, *_ in row["options"])
    place = ", device, dtype" if row["has_parameters"] else ""
    source = (
        f"def __init__(self, {arguments}):\n"
        "    super(_class, self).__init__()\n"
        f"    _layer_init({index}, self, ({given}){place})\n"
        "    if _parameter_hooks or _buffer_hooks:\n"
        "        _announce(self)\n"
    )
    scope = {"_layer_init": _C._layer_init, "__name__": __name__, "_announce": _announce}
    scope |= {"_parameter_hooks": registration["parameter"], "_buffer_hooks": registration["buffer"]}
    exec(compile(source, f"<kiln.nn.{row['name']}>", "exec"), scope)
    scope["__init__"].__qualname__ = f"{row['name']}.__init__"
    return scope["__init__"], scope


def _make(index, row):
    """The class of a row."""
    members = {
        "__module__": f"kiln.nn.modules.{row['home']}",
        "__doc__": ClassDocstring(row["doc"]),
        "_version": row["version"],
    }
    scope = {}
    if signature(row):  # without options, Module's own will do
        members["__init__"], scope = _constructor(index, row)
    scope["_class"] = type(Module)(row["name"], (Module,), members)
    _C._layer_install(index, scope["_class"])
    return scope["_class"]


#: The files of PyTorch's torch.nn.modules, with the layers of each.
homes = {}
for _index, _row in enumerate(_C._layers()):
    _class = _make(_index, _row)
    homes.setdefault(_row["home"], {})[_row["name"]] = _class
    globals()[_row["name"]] = _class
__all__ = sorted(name for classes in homes.values() for name in classes)
