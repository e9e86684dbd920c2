// Convolutions of one image with few output pixels. Internal to the Cpu backend.
#pragma once

#include "kiln/backend/cpu/conv/conv.h"
#include "kiln/backend/cpu/conv/conv_words.h"

namespace kiln::cpu {

bool has_few_pixels(const ConvSizes& sizes);

template <class T>
void few_pixels_forward(const ConvSizes& sizes, const T* x, const ConvWeight<T>& weight,
                        const T* bias, const Finish<T>& finish, T* y);

// The same of words (Note [Words of channels]).
void few_pixels_of_words(const ConvSizes& sizes, const float* x, const WordWeight& weight,
                         const float* bias, const HalfResults& y);

}  // namespace kiln::cpu
