// What every file of the bindings starts from: nanobind, Kiln, and how values cross between them.
#pragma once

#include <nanobind/nanobind.h>

#include "casters.h"
#include "gil.h"
#include "kiln/kiln.h"

namespace kiln::python {

namespace nb = nanobind;
using namespace nb::literals;

// The class of Python's tensors. Everything else sees the kiln::Tensor that it is.
using TensorClass = nb::class_<PyTensor>;

// Makes the exception that is being handled the interpreter's error, for functions that nanobind
// does not call.
void set_python_error() noexcept;

// One function for each file; module.cpp calls them in this order.
void bind_errors(nb::module_& m);
void bind_types(nb::module_& m);
void bind_settings(nb::module_& m);
void bind_profile(nb::module_& m);
TensorClass bind_tensor(nb::module_& m);
void bind_tensor_python(TensorClass& c);
void bind_math(nb::module_& m, TensorClass& c);
void bind_operators(TensorClass& c);
void bind_reductions(nb::module_& m, TensorClass& c);
void bind_sorting(nb::module_& m, TensorClass& c);
void bind_statistics(nb::module_& m, TensorClass& c);
void bind_shapes(nb::module_& m, TensorClass& c);
void bind_rearranging(nb::module_& m, TensorClass& c);
void bind_scatter(nb::module_& m, TensorClass& c);
void bind_indexing(nb::module_& m, TensorClass& c);
void bind_in_place(TensorClass& c);
void bind_creation(nb::module_& m, TensorClass& c);
void bind_random(nb::module_& m, TensorClass& c);
void bind_pointwise(nb::module_& m, TensorClass& c);
void bind_special(nb::module_& m);
void bind_quantization(nb::module_& m, TensorClass& tensor);
void bind_complex(nb::module_& m, TensorClass& c);
void bind_interop(nb::module_& m, TensorClass& c);
void bind_autograd(nb::module_& m, TensorClass& c);
void bind_derivatives(nb::module_& m, TensorClass& c);
void bind_custom_function(nb::module_& m);
void bind_linalg(nb::module_& m, TensorClass& c);
void bind_functional(nb::module_& m);
void bind_fft(nb::module_& m);
void bind_stft(nb::module_& m, TensorClass& c);
void bind_optim(nb::module_& m);
void bind_io(nb::module_& m);
void bind_init(nb::module_& m);
void bind_module(nb::module_& m);
void bind_module_hooks(nb::module_& m);
void bind_cpp_modules(nb::module_& m);
void bind_sparse(nb::module_& m);
void bind_keywords(nb::module_& m, TensorClass& c);

// A tensor's hash, and what Python's collector of cycles sees of it.
const PyType_Slot* tensor_slots();
// Learns where tensors of these classes have their dict. Before the first tensor.
void find_dicts(nb::handle tensor, nb::handle parameter, nb::handle buffer);

// Adds the method also as a function of the module, as PyTorch has most: x.exp() and kiln.exp(x).
template <class F, class... Extra>
void def_both(nb::module_& m, TensorClass& c, const char* name, F f, const Extra&... extra) {
  c.def(name, f, extra...);
  m.def(name, f, "input"_a, extra...);
}

// The only element as a Python number.
nb::object item_object(const Tensor& x);
// The tensor that an argument is. Throws TypeError naming `op`.
const Tensor& tensor_arg(const char* op, nb::handle argument);
// A tuple of tensors, as split(), chunk() and unbind() give.
nb::tuple tuple_of(const std::vector<Tensor>& tensors);
// kiln.Size, from a shape.
nb::object size_object(const Shape& shape);
// A shape given as numbers or as one sequence: zeros(2, 3), zeros((2, 3)). Throws TypeError naming
// `op`.
Shape shape_of_args(const char* op, const nb::args& args);
// Whether an object is a T, which `out` becomes. Throws what is wrong with one that is (see
// Note [No caster throws]), which nanobind's try_cast() turns into the end of the process.
template <class T>
bool try_value(nb::handle object, T& out) {
  nb::detail::make_caster<T> caster;
  constexpr auto kConvert = static_cast<uint8_t>(nb::detail::cast_flags::convert);
  const uint8_t flags = nb::detail::flags_for_local_caster<T>(kConvert);
  if (!caster.from_python(object, flags, nullptr) || !caster.template can_cast<T>()) return false;
  out = caster.operator nb::detail::cast_t<T>();
  return true;
}

// An argument as a C++ value. Throws TypeError naming `op` and what it expected.
template <class T>
T value_arg(const char* op, nb::handle argument, const char* expected) {
  T value{};
  if (!try_value(argument, value)) {
    throw nb::type_error(
        concat(op, ": expected ", expected, "; got ", name_of_type(argument)).c_str());
  }
  return value;
}

}  // namespace kiln::python

// See try_value().
#pragma GCC poison try_cast
