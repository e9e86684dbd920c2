// Random tensors. Which draws an element gets: Note [Random numbers] in random_fill.h.
#include <algorithm>
#include <cstring>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/cpu/elementwise/convert_kernels.h"
#include "kiln/backend/cpu/random/random_kernels.h"
#include "kiln/backend/random_fill.h"

namespace kiln {
namespace cpu {
namespace {

// Elements that are drawn at a time where they are converted or cut short afterwards; a multiple
// of 4.
constexpr int64_t kChunk = 512;

// Elements [begin, end), where begin is a multiple of 4, of a tensor whose numbers are drawn in
// float.
void draw_floats(HostTensor& out, int64_t begin, int64_t end, Distribution distribution,
                 RandomStream stream) {
  const RandomKernels& kernels = random_kernels();
  const Convert convert = convert_of(out.dtype());
  if (convert == Convert::none) {
    float* to = out.data_as<float>();
    const int64_t whole = (end - begin) / 4;
    kernels.fill(to + begin, begin / 4, whole, distribution, stream);
    const int64_t rest = (end - begin) % 4;
    if (rest > 0) {
      float last[4];
      kernels.fill(last, begin / 4 + whole, 1, distribution, stream);
      std::memcpy(to + begin + 4 * whole, last, static_cast<size_t>(rest) * sizeof(float));
    }
    return;
  }
  auto* to = out.data_as<uint16_t>();
  const bool bounded = distribution.type == Distribution::Type::uniform;
  const auto most = static_cast<float>(host::largest_uniform(distribution, out.dtype()));
  alignas(64) float chunk[kChunk];
  for (int64_t i = begin; i < end; i += kChunk) {
    const int64_t n = std::min(kChunk, end - i);
    kernels.fill(chunk, i / 4, (n + 3) / 4, distribution, stream);
    for (int64_t j = 0; bounded && j < n; ++j) chunk[j] = std::min(chunk[j], most);
    convert_kernels().from_float(convert, chunk, to + i, n);
  }
}

// Those of them that are drawn two from a block.
template <class T, class Fill>
void draw_wide(Fill fill, T* out, int64_t begin, int64_t end, Distribution distribution,
               RandomStream stream) {
  const int64_t whole = (end - begin) / 2;
  fill(out + begin, begin / 2, whole, distribution, stream);
  if ((end - begin) % 2 == 0) return;
  T last[2];
  fill(last, begin / 2 + whole, 1, distribution, stream);
  out[end - 1] = last[0];
}

HostHandle random(const Shape& shape, Distribution distribution, RandomStream stream, DType dtype,
                  Device device) {
  HostHandle out = host::empty(shape, dtype, device);
  const bool in_float = is_floating_point(dtype) && dtype != DType::f64 &&
                        distribution.type != Distribution::Type::integers;
  parallel_for(out->numel(), kGrain, [&](int64_t begin, int64_t end) {
    if (in_float) {
      draw_floats(*out, begin, end, distribution, stream);
    } else if (dtype == DType::i64 && distribution.type == Distribution::Type::integers) {
      draw_wide(random_kernels().integers, out->data_as<int64_t>(), begin, end, distribution,
                stream);
    } else if (dtype == DType::f64 && distribution.type == Distribution::Type::uniform) {
      draw_wide(random_kernels().uniform, out->data_as<double>(), begin, end, distribution, stream);
    } else {
      host::fill_random(out->data(), dtype, begin, end, distribution, stream);
    }
  });
  return out;
}

}  // namespace
}  // namespace cpu

HostHandle CpuOps::float_random(const Shape& shape, Distribution distribution, RandomStream stream,
                                DType dtype, Device device) {
  return cpu::random(shape, distribution, stream, dtype, device);
}
HostHandle CpuOps::int_random(const Shape& shape, Distribution distribution, RandomStream stream,
                              DType dtype, Device device) {
  return cpu::random(shape, distribution, stream, dtype, device);
}

}  // namespace kiln
