// Convolutions of 3 x 3 windows with a quarter of the products. Internal to the Cpu backend.
#pragma once

#include "kiln/backend/cpu/conv/conv.h"

namespace kiln::cpu {

// Note [Winograd]: a tile of 4 x 4 outputs of one channel takes 144 products directly and 36 in the
// transformed domain, where each of the 36 positions is a matrix product over the channels. The
// transforms cost what some hundred products would, so it pays from about 16 channels on. Errors
// are at most about twice those of a direct sum (winograd_kernels.cpp says how), but they depend on
// the largest input of a tile, not on those of a window; where something is not finite, or
// overflows, the direct way gives what each window gives.

// Whether it is faster than the direct way, by a model of both.
bool winograd_pays(const ConvSizes& sizes);

// Whether it is faster, in float, than words of bf16 (Note [Words of channels]), conversions
// included.
bool winograd_beats_words(const ConvSizes& sizes);

// y = conv(x, weight) + bias (may be null), finished, for windows of 3 x 3 with stride and
// dilation 1. Returns false when some output is not finite: y must then be computed directly.
bool winograd_forward(const ConvSizes& sizes, const float* x, const ConvWeight<float>& weight,
                      const float* bias, const Finish<float>& finish, float* y);

}  // namespace kiln::cpu
