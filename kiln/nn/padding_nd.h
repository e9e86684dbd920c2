// PaddingNd: how a convolution pads each spatial dim.
#pragma once

#include <string>

#include "kiln/nn/size_nd.h"
#include "kiln/tensor/tensor.h"

namespace kiln::nn {

// As many on each side: a number, one for each dim, "same" (the result has the input's size, for
// stride 1) or "valid" (none). Throws ValueError for another word.
class PaddingNd {
 public:
  PaddingNd() : sizes_(0) {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  PaddingNd(T each) : sizes_(each) {}
  PaddingNd(std::initializer_list<int64_t> sizes) : sizes_(sizes) {}
  PaddingNd(SizeNd sizes) : sizes_(std::move(sizes)) {}
  PaddingNd(std::string word);
  PaddingNd(const char* word) : PaddingNd(std::string(word)) {}

  const SizeNd& sizes() const { return sizes_; }     // zero for a word
  const std::string& word() const { return word_; }  // empty for numbers

 private:
  SizeNd sizes_;
  std::string word_;
};
Json to_config_json(const PaddingNd& padding);
bool from_config_json(const Json& json, PaddingNd& padding);
inline std::string config_type(const PaddingNd&) {
  return "integer or list of integers, \"same\" or \"valid\"";
}

namespace detail {

// Throws ValueError for a mode that is none of zeros, reflect, replicate and circular. `layer`: the
// class's name.
void check_padding_mode(const char* layer, const std::string& mode);
// x padded as a convolution with this kernel [O, C, K..] pads it, in another mode than zeros.
Tensor padded_by_mode(const Tensor& x, const Shape& kernel, const Shape& dilation,
                      const PaddingNd& padding, const std::string& mode);

}  // namespace detail
}  // namespace kiln::nn
