#include "kiln/data/rows.h"

#include <cstring>

#include "kiln/core/error.h"
#include "kiln/tensor/creation.h"

namespace kiln::data::detail {

bool is_plain(const Tensor& x) {
  const DeviceType type = x.device().type;
  return (type == kCpu || type == kReference) && kind_of(x.dtype()) != Kind::quantized &&
         x.is_contiguous();
}

std::byte* bytes_of(const Tensor& x) {
  return visit_dtype("data", x.dtype(),
                     [&]<class T>() { return reinterpret_cast<std::byte*>(x.data_ptr<T>()); });
}

Tensor gather_rows(const Tensor& x, std::span<const int64_t> indices) {
  Shape shape = x.shape();
  const int64_t rows = shape[0];
  shape[0] = static_cast<int64_t>(indices.size());
  Tensor out = empty(shape, {.dtype = x.dtype(), .device = x.device()});
  if (out.numel() == 0) return out;
  const size_t row = static_cast<size_t>(x.numel() / rows) * size_of(x.dtype());
  const std::byte* from = bytes_of(x);
  std::byte* to = bytes_of(out);
  for (const int64_t i : indices) {
    std::memcpy(to, from + static_cast<size_t>(i) * row, row);
    to += row;
  }
  return out;
}

}  // namespace kiln::data::detail
