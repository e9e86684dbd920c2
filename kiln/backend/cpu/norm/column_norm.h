// Batch normalization of rows of channels, [N, C]: they are read as they lie. Internal to the Cpu
// backend.
#pragma once

#include <cstdint>

namespace kiln::cpu {

// Row-major [rows, channels]. weight and bias [channels] may be null.
struct ChannelRows {
  int64_t rows, channels;
};

template <class T>
void batch_norm_of_rows(const ChannelRows& p, const T* x, const T* weight, const T* bias,
                        double eps, T* y, T* mean, T* var);

template <class T>
void batch_norm_of_rows_backward(const ChannelRows& p, const T* g, const T* x, const T* weight,
                                 const T* mean, const T* var, double eps, T* dx, T* weight_grad,
                                 T* bias_grad);

template <class T>
void batch_norm_of_rows_inference(const ChannelRows& p, const T* x, const T* mean, const T* var,
                                  const T* weight, const T* bias, double eps, T* y);

}  // namespace kiln::cpu
