// Convolutions whose groups have one input channel: no products of matrices, but a few shifted
// images, each times a number. Internal to the Cpu backend.
#pragma once

#include "kiln/backend/cpu/conv/conv.h"

namespace kiln::cpu {

// Output channels beyond these share what is read: they are rows of a product again.
inline bool is_depthwise(const ConvSizes& s) { return s.in == 1 && s.out <= 3; }

// As conv_forward() and conv_weight_grad(), where is_depthwise(). No dim of y is 0.
template <class T>
void depthwise_forward(const ConvSizes& sizes, const T* x, const T* weight, const T* bias,
                       const Finish<T>& finish, T* y);
template <class T>
void depthwise_weight_grad(const ConvSizes& sizes, const T* x, const T* g, T* weight_grad);

// Output rows that apply_planes computes at once.
inline constexpr int64_t kDepthwiseRows = 4;
// Whether depthwise_forward() goes plane by plane, with apply_planes.
template <class T>
bool is_by_rows(const ConvSizes& sizes);

// Of volumes, whose groups have one channel (s.in is the depth of the window then).
template <class T>
void depthwise_volume_forward(const ConvSizes& sizes, const T* x, const T* weight, const T* bias,
                              T* y);
template <class T>
void depthwise_volume_weight_grad(const ConvSizes& sizes, const T* x, const T* g, T* weight_grad);

// Whether the planes are small enough for depthwise_by_channels(), and the channels many enough;
// then as depthwise_forward().
template <class T>
bool is_by_channels(const ConvSizes& sizes);
// Of a few pixels, a product of some rows is mostly overhead.
template <class T>
bool is_tiny_by_channels(const ConvSizes& s) {
  return s.in == 1 && s.out <= 8 && s.pixels() <= 64 && is_by_channels<T>(s);
}
template <class T>
void depthwise_by_channels(const ConvSizes& sizes, const T* x, const T* weight, const T* bias,
                           const Finish<T>& finish, T* y);

}  // namespace kiln::cpu
