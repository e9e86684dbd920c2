#include "kiln/backend/cpu/conv/conv_words.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kiln/backend/cpu/conv/conv_direct.h"
#include "kiln/backend/cpu/conv/depthwise.h"
#include "kiln/backend/cpu/conv/few_pixels.h"
#include "kiln/backend/cpu/conv/winograd.h"
#include "kiln/backend/cpu/matmul/gemm_words.h"
#include "kiln/core/parallel.h"

namespace kiln::cpu {
namespace {

// Whether neighbours in a row make words.
bool pairs_neighbours(const ConvSizes& s, const bfloat16* x) {
  const PatchGeometry& g = s.geometry;
  const auto is_even = [](int64_t n) { return n % 2 == 0; };
  return g.dilation[1] == 1 && is_even(g.kernel[1]) && is_even(g.stride[1]) &&
         is_even(g.padding[1]) && is_even(s.width) && reinterpret_cast<uintptr_t>(x) % 4 == 0;
}

// The same convolution of words.
ConvSizes of_words(const ConvSizes& s, bool neighbours) {
  ConvSizes words = s;
  if (neighbours) {
    words.width = words.geometry.width = s.width / 2;
    for (IntPair* along :
         {&words.geometry.kernel, &words.geometry.stride, &words.geometry.padding}) {
      (*along)[1] /= 2;
    }
  } else {
    words.in = (s.in + 1) / 2;
  }
  return words;
}

}  // namespace

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

bool convolves_words(const ConvSizes& s) {
  return word_conv_kernels() != nullptr && !s.is_volume() && s.in > 1 && !winograd_beats_words(s);
}

bool has_input_grad_of_words(const ConvSizes& s) {
  if (word_conv_kernels() == nullptr || s.is_volume() || s.in == 1 || s.out == 1) return false;
  ConvSizes turned = s;  // where strides are 1
  std::swap(turned.in, turned.out);
  std::swap(turned.height, turned.out_height);
  std::swap(turned.width, turned.out_width);
  return !winograd_beats_words(turned);
}

bool has_weight_grad_of_words(const ConvSizes& s) {
  return word_conv_kernels() != nullptr && !s.is_volume() && !is_depthwise(s) && s.batch > 1 &&
         s.out * s.depth() * s.pixels() > 0;
}

void join_weights(const ConvSizes& s, const WordWeight& weight, float* to) {
  if (weight.channels != 0) {
    join_planes(weight.data, s.groups * s.out, weight.channels, s.taps(), to);
  } else {
    std::memcpy(to, weight.data, static_cast<size_t>(s.groups * s.out * s.depth()) * sizeof(float));
  }
}

void conv_forward_of_words(const ConvSizes& s, const bfloat16* x, const bfloat16* weight,
                           const Storage* weight_storage, const float* bias,
                           const bfloat16* residual, const TileActivation<float>* activation,
                           bfloat16* y) {
  const int64_t count = s.batch * s.groups * s.out * s.pixels();
  if (count == 0) return;
  if (s.depth() == 0 && bias == nullptr && residual == nullptr && activation == nullptr) {
    std::fill_n(y, count, bfloat16());
    return;
  }
  const bool neighbours = pairs_neighbours(s, x);
  const ConvSizes words = of_words(s, neighbours);
  const bool few = has_few_pixels(s);
  ConvInput<float> seen{nullptr, {x, s.in}};
  const Scratch<float> joined(few && !neighbours ? words.in * s.plane() : 0);
  if (neighbours) {
    seen.data = reinterpret_cast<const float*>(x);
  } else if (few) {
    join_planes(x, 1, s.in, s.plane(), joined.get());
    seen.data = joined.get();
  }
  const WordWeight words_of_weight{weight, weight_storage, neighbours ? 0 : s.in};
  const HalfResults halves{&y->bits, residual == nullptr ? nullptr : bits_of(residual), activation};
  if (few) return few_pixels_of_words(words, seen.data, words_of_weight, bias, halves);
  const bool one_run = channels_of_run(words) == words.in;
  const Scratch<float> sums(one_run ? 0 : count);
  forward_directly(words, word_conv_kernels()->products, seen, words_of_weight, bias,
                   ConvOutput<float>{sums.get(), {}, halves});
}

}  // namespace kiln::cpu
