// kiln._C: the compiled part of the package. The rest of the package is beside it, in Python.
#include "overrides.h"
#include "parts.h"

namespace kiln::python {
void bind_compile(nb::module_& m);
void bind_docstrings(nb::module_& m);
void bind_graph_model(nb::module_& m);
void bind_onnx(nb::module_& m);
void bind_pt2(nb::module_& m);
void bind_opencl(nb::module_& m);
}  // namespace kiln::python

NB_MODULE(_C, m) {
  using namespace kiln::python;
  m.doc() = "The compiled part of the package kiln.";
  nb::set_leak_warnings(false);  // dtypes and error classes live as long as the process
  m.attr("__version__") = KILN_PYTHON_VERSION;
  bind_errors(m);
  bind_types(m);
  bind_settings(m);
  bind_docstrings(m);
  bind_profile(m);
  TensorClass tensor = bind_tensor(m);
  bind_tensor_python(tensor);
  bind_operators(tensor);
  bind_in_place(tensor);
  bind_math(m, tensor);
  bind_reductions(m, tensor);
  bind_sorting(m, tensor);
  bind_statistics(m, tensor);
  bind_shapes(m, tensor);
  bind_rearranging(m, tensor);
  bind_scatter(m, tensor);
  bind_indexing(m, tensor);
  bind_pointwise(m, tensor);
  bind_creation(m, tensor);
  bind_random(m, tensor);
  bind_special(m);
  bind_quantization(m, tensor);
  bind_interop(m, tensor);
  bind_autograd(m, tensor);
  bind_derivatives(m, tensor);
  bind_custom_function(m);
  bind_linalg(m, tensor);
  bind_complex(m, tensor);  // after the forms for real numbers
  bind_functional(m);
  bind_fft(m);
  bind_stft(m, tensor);
  bind_optim(m);
  bind_compile(m);
  bind_graph_model(m);
  bind_onnx(m);
  bind_pt2(m);
  bind_opencl(m);
  bind_io(m);
  bind_init(m);
  bind_rl(m);
  bind_vision(m);
  bind_metrics(m);
  bind_tokenizers(m);
  bind_audio(m);
  bind_data(m);
  bind_train(m);
  bind_distributed(m);
  bind_module(m);
  bind_module_hooks(m);
  bind_cpp_modules(m);
  bind_overrides(m, tensor);
  bind_sparse(m);
  bind_keywords(m, tensor);  // last: it goes over what the others have bound
}
