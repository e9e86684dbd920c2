// Group normalization, and the gradient of a normalization with given statistics, over host memory.
#pragma once

#include <cstdint>

namespace kiln::cpu {

// [batch, groups * channels, plane]: a group of an image are `channels` planes, one after another.
struct ChannelGroups {
  int64_t batch, groups, channels, plane;
  int64_t all_channels() const { return groups * channels; }
};

// y = (x - mean) rstd w + b with the statistics [batch, groups] of each group. w and b
// [groups * channels] may be null.
template <class T>
void group_norm(const ChannelGroups& s, const T* x, const T* w, const T* b, double eps, T* y,
                T* mean, T* rstd);
template <class T>
void group_norm_backward(const ChannelGroups& s, const T* g, const T* x, const T* w, const T* mean,
                         const T* rstd, T* dx, T* dw, T* db);

// Of y = (x - mean) rsqrt(var + eps) w + b with statistics [channels] (one group) that are no
// function of x.
template <class T>
void affine_norm_backward(const ChannelGroups& s, const T* g, const T* x, const T* mean,
                          const T* var, const T* w, double eps, T* dx, T* dw, T* db);

}  // namespace kiln::cpu
