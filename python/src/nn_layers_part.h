// The layers of kiln/nn/layers.def as LayerTypes, in parts: a file for each part, so that several
// are compiled at a time. A file defines KILN_LAYERS_PART and includes this one.
#include "nn_layer_forward.h"

namespace kiln::python {
namespace {

template <size_t row, class L>
void add_row(std::vector<std::unique_ptr<LayerType>>& out, const char* name, const char* home,
             const char* forward, const char* doc) {
  if constexpr (row % kLayerParts == KILN_LAYERS_PART) {
    out[row] = std::make_unique<LayerTypeOf<L>>(name, home, forward, doc);
  }
}

}  // namespace

template <>
void make_layer_types<KILN_LAYERS_PART>(std::vector<std::unique_ptr<LayerType>>& out) {
  constexpr size_t kFirst = __COUNTER__ + 1;
#define KILN_LAYER(Class, home, forward, doc) \
  add_row<__COUNTER__ - kFirst, nn::Class>(out, #Class, #home, forward, doc);
#include "kiln/nn/layers.def"
#undef KILN_LAYER
}

}  // namespace kiln::python
