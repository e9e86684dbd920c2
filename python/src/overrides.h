// Functions that subclasses of tensors and modes override: PyTorch's __torch_function__.
//
// Note [Overrides]
// Every bound function asks first whether anybody overrides anything: `active`, which is false
// until a program derives from Tensor or enters a mode. Then the arguments are looked through, and
// where a mode is on, or one of them is of a class with a __torch_function__, that is called with
// the function in the place of the function itself. Tensor's own __torch_function__ calls the
// function and gives its results the class; it is known here, so that it costs no Python.
//
// kiln/overrides.py says which functions can be overridden, the first time that it matters.
#pragma once

#include "binding.h"

namespace kiln::python {

// Puts the way of keywords and of overrides before a bound function's own caller. Once is enough.
void route(nb::handle function);
// Whether the object's class is Tensor, Parameter or Buffer itself, and none derived from them.
bool is_own_class(nb::handle object);

void bind_overrides(nb::module_& m, TensorClass& c);

namespace overrides {

// Whether a class or a mode may override functions.
inline bool active = false;

// What a call of `function` comes to where something overrides it: `handled` is true then, and null
// means Python's error. Otherwise the call is to go its usual way.
PyObject* call(PyObject* function, PyObject* const* args, size_t count, PyObject* names,
               bool& handled) noexcept;

// The same for the forward of a layer written in C++, with the layer before the inputs. A layer
// that has a form (kiln/nn/_forms.py) goes through its functions, where its inputs, its parameters
// or a mode override them.
PyObject* call_layer(PyObject* forward, PyObject* const* args, size_t count, PyObject* names,
                     bool& handled) noexcept;

// The tensor as one of that subclass of Tensor: the same memory, and the next step of its history
// where it has one.
nb::object as_subclass(nb::handle type, const Tensor& x);

}  // namespace overrides

}  // namespace kiln::python
