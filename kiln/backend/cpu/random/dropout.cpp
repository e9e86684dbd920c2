// Dropout: the mask is drawn again wherever it is needed, and never stored.
#include <algorithm>
#include <cmath>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/operand.h"
#include "kiln/backend/cpu/random/dropout_kernels.h"
#include "kiln/core/parallel.h"

namespace kiln {
namespace cpu {
namespace {

constexpr int64_t kDropoutChunk = 1024;  // elements whose words are drawn at once

void keep(const DropoutKernels& kernels, const uint32_t* words, uint32_t threshold, const float* x,
          double scale, float* y, int64_t n) {
  kernels.keep(words, threshold, x, static_cast<float>(scale), y, n);
}

void keep(const DropoutKernels&, const uint32_t* words, uint32_t threshold, const double* x,
          double scale, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = words[i] >> 8 >= threshold ? x[i] * scale : 0.0;
}

}  // namespace

// Element i is kept when word i % 4 of block i / 4, as a uniform draw, is at least p (Note [Random
// numbers]). Draws are multiples of 2^-24, so the comparison can be made on their 24 bits.
template <class T>
void drop_elements(const RandomStream& stream, double p, int64_t first, const T* x, T* y,
                   int64_t n) {
  const auto& kernels = dropout_kernels();
  const auto threshold = static_cast<uint32_t>(std::ceil(p * 0x1p24));
  const double scale = 1.0 / (1.0 - p);
  alignas(64) uint32_t words[kDropoutChunk + 64];
  while (n > 0) {
    const int64_t skipped = first % 4;
    const int64_t count = std::min(kDropoutChunk - skipped, n);
    const int64_t blocks = (skipped + count + 3) / 4;
    kernels.philox_words(stream, static_cast<uint64_t>(first / 4), blocks, words);
    std::fill_n(words + 4 * blocks, 16, 0u);
    keep(kernels, words + skipped, threshold, x, scale, y, count);
    first += count;
    x += count;
    y += count;
    n -= count;
  }
}

template void drop_elements(const RandomStream&, double, int64_t, const float*, float*, int64_t);
template void drop_elements(const RandomStream&, double, int64_t, const double*, double*, int64_t);

}  // namespace cpu

namespace {

template <class T>
void run_dropout(const T* x, double p, const RandomStream& stream, T* y, int64_t n) {
  parallel_for(n, kGrain / 2, [&](int64_t begin, int64_t end) {
    cpu::drop_elements(stream, p, begin, x + begin, y + begin, end - begin);
  });
}

}  // namespace

HostHandle CpuOps::float_dropout(Arg<HostHandle> x, double p, RandomStream stream) {
  const DType dtype = x.get()->dtype();
  if (cpu::is_half(dtype)) {
    return cpu::narrowed(float_dropout(cpu::widened(x), p, stream), dtype);
  }
  const cpu::ReusableOperand in(x);
  HostHandle out = in.result();
  const int64_t n = out->numel();
  if (dtype == DType::f64) {
    run_dropout(in.tensor().data_as<const double>(), p, stream, out->data_as<double>(), n);
  } else {
    run_dropout(in.tensor().data_as<const float>(), p, stream, out->data_as<float>(), n);
  }
  return out;
}

}  // namespace kiln
