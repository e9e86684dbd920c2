// Convolution of row-major tensors in f32 and f64. Internal to the Cpu backend.
#pragma once

#include "kiln/backend/cpu/conv/conv_kernels.h"
#include "kiln/backend/cpu/elementwise/finish.h"
#include "kiln/core/shape.h"
#include "kiln/core/storage.h"

namespace kiln::cpu {

// The sizes of one convolution.
struct ConvSizes {
  ConvSizes(const Shape& x, const Shape& weight, const ConvOptions& options);

  int64_t batch, groups;
  int64_t in, out;  // channels of one group
  int64_t height, width;
  int64_t out_height, out_width;
  PatchGeometry geometry;

  int64_t pixels() const { return out_height * out_width; }  // of an output plane
  int64_t plane() const { return height * width; }           // of an input plane
  int64_t taps() const { return geometry.kernel[0] * geometry.kernel[1]; }
  int64_t depth() const { return in * taps(); }  // products in an output element
};

// Whether each output pixel sees the input pixel in its own place and nothing else.
inline bool sees_whole_planes(const ConvSizes& s) {
  const PatchGeometry& g = s.geometry;
  return s.taps() == 1 && g.stride == IntPair{1, 1} && g.padding == IntPair{0, 0} &&
         s.out_width == s.width && s.out_height == s.height;
}

// Weights, and the storage that holds them, beside which their packed form may be kept (Note [Kept
// data]); null for those that nobody uses again.
template <class T>
struct ConvWeight {
  const T* data;
  const Storage* storage = nullptr;
};

// y = conv(x, weight) + bias (may be null), finished while it is in the cache.
template <class T>
void conv_forward(const ConvSizes& sizes, const T* x, const ConvWeight<T>& weight, const T* bias,
                  const Finish<T>& finish, T* y);
template <class T>
void conv_input_grad(const ConvSizes& sizes, const T* weight, const T* g, T* x_grad);
template <class T>
void conv_weight_grad(const ConvSizes& sizes, const T* x, const T* g, T* weight_grad);

}  // namespace kiln::cpu
