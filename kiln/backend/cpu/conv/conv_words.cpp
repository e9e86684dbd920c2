#include "kiln/backend/cpu/conv/conv_words.h"

#include <algorithm>

#include "kiln/backend/cpu/conv/conv_direct.h"
#include "kiln/backend/cpu/conv/depthwise.h"
#include "kiln/backend/cpu/matmul/gemm_words.h"
#include "kiln/core/parallel.h"

namespace kiln::cpu {
namespace {

static_assert(sizeof(bfloat16) == sizeof(uint16_t));
const uint16_t* bits_of(const bfloat16* x) { return &x->bits; }

// The same convolution of words.
ConvSizes of_words(const ConvSizes& s) {
  ConvSizes words = s;
  words.in = (s.in + 1) / 2;
  return words;
}

// Joins the channels of `images` images, `channels` planes each.
void join_planes(const bfloat16* x, int64_t images, int64_t channels, int64_t plane, float* to) {
  const Bf16Kernels& kernels = *bf16_kernels();
  const int64_t pairs = (channels + 1) / 2;
  parallel_for(images * pairs, std::max<int64_t>(kGrain / std::max<int64_t>(plane, 1), 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t channel = i % pairs * 2;
                   const uint16_t* even = bits_of(x) + (i / pairs * channels + channel) * plane;
                   kernels.join(even, channel + 1 < channels ? even + plane : nullptr, plane,
                                reinterpret_cast<uint32_t*>(to) + i * plane);
                 }
               });
}

}  // namespace

bool convolves_words(const ConvSizes& s) {
  return word_conv_kernels() != nullptr && !s.is_volume() && s.in > 1 && !is_tiny_by_channels<float>(s);
}

void join_weights(const ConvSizes& s, const WordWeight& weight, float* to) {
  join_planes(weight.data, s.groups * s.out, weight.channels, s.taps(), to);
}

void conv_forward_of_words(const ConvSizes& s, const bfloat16* x, const bfloat16* weight,
                           const Storage* weight_storage, const float* bias,
                           const bfloat16* residual, const TileActivation<float>* activation,
                           bfloat16* y) {
  if (s.batch * s.groups * s.out * s.pixels() == 0) return;
  const ConvSizes words = of_words(s);
  const Scratch<float> joined(s.batch * s.groups * words.in * s.plane());
  join_planes(x, s.batch * s.groups, s.in, s.plane(), joined.get());
  const bool one_run = channels_of_run(words) == words.in;
  const Scratch<float> sums(one_run ? 0 : s.batch * s.groups * s.out * s.pixels());
  ConvOutput<float> out;
  out.y = sums.get();
  out.halves = {&y->bits, residual == nullptr ? nullptr : bits_of(residual), activation};
  forward_directly(words, *word_conv_kernels(), static_cast<const float*>(joined.get()),
                   WordWeight{weight, weight_storage, s.in}, bias, out);
}

}  // namespace kiln::cpu
