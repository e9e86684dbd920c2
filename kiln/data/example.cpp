#include "kiln/data/example.h"

#include <algorithm>
#include <cstring>

#include "kiln/core/error.h"
#include "kiln/data/rows.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"

namespace kiln::data {

namespace {

void check_alike(const Tensor& first, const Tensor& other, size_t place, size_t sample) {
  if (other.shape() != first.shape()) {
    throw_error<ShapeError>("collate: tensor ", place, " of the samples differs in shape; got ",
                            other.shape(), " for sample ", sample, " of the batch and ",
                            first.shape(), " for the first; expected one shape (pad or crop, or ",
                            "give the loader a collate function)");
  }
  if (other.dtype() != first.dtype()) {
    throw_error<DTypeError>("collate: tensor ", place, " of the samples differs in dtype; got ",
                            other.dtype(), " for sample ", sample, " of the batch and ",
                            first.dtype(), " for the first; expected one dtype");
  }
  if (other.device() != first.device()) {
    throw_error<DeviceError>("collate: tensor ", place, " of the samples differs in device; got ",
                             other.device(), " for sample ", sample, " of the batch and ",
                             first.device(), " for the first; expected one device");
  }
}

Tensor stack_place(std::span<const Example> examples, size_t place) {
  const Tensor& first = examples[0][place];
  bool plain = detail::is_plain(first);
  for (size_t i = 1; i < examples.size(); ++i) {
    const Tensor& other = examples[i][place];
    check_alike(first, other, place, i);
    plain = plain && detail::is_plain(other);
  }
  if (!plain || first.dim() == kMaxRank) {
    std::vector<Tensor> tensors;
    for (const Example& e : examples) tensors.push_back(e[place]);
    return stack(tensors);
  }
  Shape shape = first.shape();
  shape.insert(0, static_cast<int64_t>(examples.size()));
  Tensor out = empty(shape, {.dtype = first.dtype(), .device = first.device()});
  const size_t bytes = static_cast<size_t>(first.numel()) * size_of(first.dtype());
  if (bytes == 0) return out;
  std::byte* to = detail::bytes_of(out);
  for (const Example& e : examples) {
    std::memcpy(to, detail::bytes_of(e[place]), bytes);
    to += bytes;
  }
  return out;
}

}  // namespace

void Example::throw_out_of_range(size_t i) const {
  throw_error<IndexError>("Example: index out of range; got ", i, " for ", size(), " tensors");
}

Batch collate(std::span<const Example> examples) {
  if (examples.empty()) throw ValueError("collate: no examples; expected at least one");
  const size_t places = examples[0].size();
  for (const Example& e : examples) {
    if (e.size() != places) {
      throw_error<ValueError>("collate: the samples differ in their number of tensors; got ",
                              e.size(), " and ", places);
    }
  }
  std::vector<Tensor> tensors;
  tensors.reserve(places);
  for (size_t place = 0; place < places; ++place) tensors.push_back(stack_place(examples, place));
  return Batch(std::move(tensors));
}

}  // namespace kiln::data
