// The layers of kiln/nn/layers.def as LayerTypes.
#include "functional.h"
#include "nn_layer_type.h"

namespace kiln::python {

// linear(x, activation="gelu", residual=y)
template <>
struct LayerForward<nn::Linear> {
  static PyObject* call(const char* name, nn::Linear& layer, PyObject* const* args, int64_t numel) {
    const std::string_view activation = PyUnicode_Check(args[1]) ? PyUnicode_AsUTF8(args[1]) : "";
    if (activation == "none" && args[2] == Py_None) {
      return call_layer<Tensor>(name, layer, args, numel,
                                [](nn::Linear& l, const Tensor& x) { return l.forward(x); });
    }
    return call_layer<Tensor, std::string, Tensor>(
        name, layer, args, numel,
        [](nn::Linear& l, const Tensor& x, const std::string& word, const Tensor& residual) {
          return l.forward(x, F::LinearOptions{activation_of(word), residual});
        });
  }
};

std::vector<std::unique_ptr<LayerType>> make_layer_types() {
  std::vector<std::unique_ptr<LayerType>> out;
#define KILN_LAYER(Class, home, forward, doc) \
  out.push_back(std::make_unique<LayerTypeOf<nn::Class>>(#Class, #home, forward, doc));
#include "kiln/nn/layers.def"
#undef KILN_LAYER
  return out;
}

}  // namespace kiln::python
