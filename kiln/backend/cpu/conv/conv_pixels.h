// Convolutions whose output pixels are the rows of products. Internal to the Cpu backend.
#pragma once

#include "kiln/backend/cpu/conv/conv.h"

namespace kiln::cpu {

// What this way costs for each tap, all else shared out, in the unit of best_way() in
// conv_forward.cpp: a vector of multiply-adds, for as many pixels as it has lanes.
template <class T>
double cost_by_pixels(const ConvSizes& sizes);

template <class T>
void forward_by_pixels(const ConvSizes& sizes, const T* x, const ConvWeight<T>& weight,
                       const T* bias, const Finish<T>& finish, T* y);

}  // namespace kiln::cpu
