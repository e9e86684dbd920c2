// Convolutions whose output pixels are the rows of products. Internal to the Cpu backend.
#pragma once

#include "kiln/backend/cpu/conv/conv.h"

namespace kiln::cpu {

// What a product for an output pixel costs, in vectors of multiply-adds for as many pixels as a
// vector has lanes, beside those of conv_forward.cpp: with all overheads.
template <class T>
double cost_by_pixels(const ConvSizes& sizes);

template <class T>
void forward_by_pixels(const ConvSizes& sizes, const T* x, const ConvWeight<T>& weight,
                       const T* bias, const Finish<T>& finish, T* y);

}  // namespace kiln::cpu
