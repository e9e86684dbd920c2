// Convolutions of bf16 that are not widened first. Internal to the Cpu backend.
#pragma once

#include <cstdint>

#include "kiln/backend/cpu/conv/conv.h"
#include "kiln/backend/cpu/matmul/gemm_kernels.h"
#include "kiln/core/half.h"

namespace kiln::cpu {

// Note [Words of channels]: an instruction that multiplies pairs of bf16 takes two channels at
// once. The input's planes are joined in pairs, so that an element is a word of 4 bytes, and so are
// the weights: where patches are read in place, as a band of them is copied, else beforehand. From
// there on a convolution is one of floats with half as many channels: words are copied, padded and
// packed by the kernels that copy floats, which keep all bits, and one kernel multiplies. Sums are
// floats.
//
// Where windows begin at even columns and are of even width, neighbours in a row make the words,
// and nothing is joined.
struct WordConvKernels {
  GemmKernels<float> products;  // those of floats, but blocks take words
  // sums[i] + bias for i in [0, count), finished, as results [at, at + count).
  void (*finish_row)(const float* sums, int64_t count, float bias, const HalfResults& to,
                     int64_t at);
  // What PatchKernels<float>::pad() copies of the plane of words that two planes give; odd: null
  // for zeros.
  void (*pad)(const uint16_t* even, const uint16_t* odd, int64_t height, int64_t width, int64_t top,
              int64_t left, const IntPair& step, int64_t rows, int64_t row_width, uint32_t* to);
};
// Null where the machine has no such instruction.
const WordConvKernels* word_conv_kernels();

// Weights that are bf16 in memory; `channels` of a group, or 0 where their words are neighbours.
struct WordWeight {
  const bfloat16* data;
  const Storage* storage = nullptr;
  int64_t channels = 0;
};
inline int64_t form_of(const WordWeight& weight) { return weight.channels == 0 ? -2 : -1; }
// Their words: [groups * out, in, taps], where `sizes` counts words.
void join_weights(const ConvSizes& sizes, const WordWeight& weight, float* to);

// Joins the planes of `images` images, `channels` each, in pairs; the last of an odd number with
// zeros.
void join_planes(const bfloat16* x, int64_t images, int64_t channels, int64_t plane, float* to);

// Planes of bf16 that are not joined yet, `channels` in each group of each image.
struct HalfPlanes {
  const bfloat16* data = nullptr;
  int64_t channels = 0;
};

// Whether conv_forward_of_words() takes this convolution of bf16.
bool convolves_words(const ConvSizes& sizes);

// y = conv(x, weight) + bias (may be null); then, where they are there, + residual, and its
// activation. Products are exact, sums are floats, and each of the three steps rounds to bf16;
// numbers and partial sums below 2^-126 count as zero. `weight_storage` as in ConvWeight.
void conv_forward_of_words(const ConvSizes& sizes, const bfloat16* x, const bfloat16* weight,
                           const Storage* weight_storage, const float* bias,
                           const bfloat16* residual, const TileActivation<float>* activation,
                           bfloat16* y);

// The gradients, where they are taken: that of the input rounded to bf16, as a convolution of g,
// and that of the weights in float. There the words are of two images.
bool has_input_grad_of_words(const ConvSizes& sizes);
void conv_input_grad_of_words(const ConvSizes& sizes, const bfloat16* weight, const bfloat16* g,
                              bfloat16* x_grad);
bool has_weight_grad_of_words(const ConvSizes& sizes);
void conv_weight_grad_of_words(const ConvSizes& sizes, const bfloat16* x, const bfloat16* g,
                               float* weight_grad);

}  // namespace kiln::cpu
