#include "kiln/nn/padding_nd.h"

#include <utility>

#include "kiln/core/error.h"
#include "kiln/tensor/nn/padding.h"

namespace kiln::nn {

PaddingNd::PaddingNd(std::string word) : sizes_(0), word_(std::move(word)) {
  if (word_ != "same" && word_ != "valid") {
    throw_error<ValueError>("padding: the word is unknown; got '", word_,
                            "'; expected 'same' or 'valid'");
  }
}

Json to_config_json(const PaddingNd& padding) {
  if (!padding.word().empty()) return padding.word();
  return to_config_json(padding.sizes());
}

bool from_config_json(const Json& json, PaddingNd& padding) {
  if (const std::string* word = json.as<std::string>()) {
    if (*word != "same" && *word != "valid") return false;
    padding = PaddingNd(*word);
    return true;
  }
  SizeNd sizes;
  if (!from_config_json(json, sizes)) return false;
  padding = PaddingNd(sizes);
  return true;
}

namespace detail {

void check_padding_mode(const char* layer, const std::string& mode) {
  if (mode == "zeros" || mode == "reflect" || mode == "replicate" || mode == "circular") return;
  throw_error<ValueError>(layer, ": got padding_mode '", mode,
                          "'; expected zeros, reflect, replicate or circular");
}

Tensor padded_by_mode(const Tensor& x, const Shape& kernel, const Shape& dilation,
                      const PaddingNd& padding, const std::string& mode) {
  if (padding.word() == "valid") return x;
  Shape sides;  // the last dim's first
  for (int i = kernel.rank() - 1; i >= 2; --i) {
    const int d = i - 2;
    int64_t before = 0, after = 0;
    if (padding.word() == "same") {
      const int64_t both = dilation[dilation.rank() == 1 ? 0 : d] * (kernel[i] - 1);
      before = both / 2;
      after = both - before;
    } else {
      const Shape& sizes = padding.sizes().values();
      before = after = sizes[sizes.rank() == 1 ? 0 : d];
    }
    sides.push_back(before);
    sides.push_back(after);
  }
  return functional::pad(x, sides, mode);
}

}  // namespace detail
}  // namespace kiln::nn
