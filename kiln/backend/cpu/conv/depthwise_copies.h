// The planes that depthwise convolutions see, copied with their padding. Internal to the Cpu
// backend.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "kiln/backend/cpu/conv/conv.h"
#include "kiln/backend/cpu/conv/conv_kernels.h"
#include "kiln/backend/cpu/conv/conv_phases.h"
#include "kiln/backend/cpu/conv/depthwise_kernels.h"
#include "kiln/backend/cpu/rounding.h"

namespace kiln::cpu {

// Elements of a copy: with the output they stay in the first-level cache.
inline constexpr int64_t kDepthwiseCopyElements = 4096;
// The same of all planes of a volume: the second-level cache has room for them.
inline constexpr int64_t kVolumeCopyElements = 32 * 1024;

// Products of a gradient that one lane adds up before lanes are added to the sum of all.
inline constexpr int64_t kLongestSum = 256;

// Copies of some planes, in bands of output rows; of several planes at once where they are small.
template <class T>
class PlaneCopies {
 public:
  // With `depth`, so many planes at once, however large: those of a volume.
  explicit PlaneCopies(const ConvSizes& s, int64_t depth = 0)
      : s_(s),
        kernels_(depthwise_kernels<T>()),
        down_(s.geometry.kernel[0], s.geometry.stride[0], s.geometry.dilation[0]),
        along_(s.geometry.kernel[1], s.geometry.stride[1], s.geometry.dilation[1]),
        row_(s.out_width + along_.reach - 1) {
    const int64_t phases = down_.count() * along_.count();
    const int64_t elements =
        depth == 0 ? kDepthwiseCopyElements : kVolumeCopyElements / std::max<int64_t>(depth, 1);
    const int64_t affordable =
        std::max<int64_t>(elements / (row_ * phases) - down_.reach + 1, down_.reach);
    rows_ = ceil_div(s.out_height, ceil_div(s.out_height, affordable));
    bands_ = ceil_div(s.out_height, rows_);
    copied_rows_ = rows_ + down_.reach - 1;
    const int64_t size = copied_rows_ * row_;
    planes_ = depth > 0    ? depth
              : bands_ > 1 ? 1
                           : std::clamp<int64_t>(kDepthwiseCopyElements / (2 * size * phases), 1,
                                                 kMostPlanes);
    for (int64_t r = 0; r < s.geometry.kernel[0]; ++r) {
      for (int64_t c = 0; c < s.geometry.kernel[1]; ++c) {
        const auto i = static_cast<size_t>(r), j = static_cast<size_t>(c);
        const int64_t phase = down_.phase[i] * along_.count() + along_.phase[j];
        offsets_.push_back(phase * planes_ * size + down_.place[i] * row_ + along_.place[j]);
      }
    }
    whole_ = columns_of(rows_);
    last_ = columns_of(s.out_height - (bands_ - 1) * rows_);
  }

  int64_t bands() const { return bands_; }
  int64_t planes() const { return planes_; }
  int64_t first_row(int64_t band) const { return band * rows_; }
  int64_t rows(int64_t band) const { return std::min(rows_, s_.out_height - first_row(band)); }
  // Elements, with room for what is written and read beyond the end.
  int64_t room() const {
    return down_.count() * along_.count() * planes_ * copied_rows_ * row_ + row_ +
           2 * kernels_.lanes;
  }

  // Copies what a band sees of `count` planes, `step` elements apart.
  void copy(const T* planes, int64_t step, int64_t count, int64_t band, T* to) const {
    const PatchGeometry& g = s_.geometry;
    const std::array<int64_t, kMostPlanes> at = steps_of(step);
    for (const int64_t r : down_.kinds) {
      for (const int64_t c : along_.kinds) {
        for (int64_t i = 0; i < count; i += kMostPlanes) {
          patch_kernels<T>().pad(planes + i * step, at.data(), std::min(count - i, kMostPlanes),
                                 s_.height, s_.width,
                                 first_row(band) * g.stride[0] + r - g.padding[0], c - g.padding[1],
                                 g.stride, copied_rows_, row_, to + i * copied_plane());
        }
        to += planes_ * copied_plane();
      }
    }
  }
  // From plane to plane of a copy.
  int64_t copied_plane() const { return copied_rows_ * row_; }

  int64_t spread_room() const { return planes_ * rows_ * row_ + row_ + 2 * kernels_.lanes; }
  int64_t spread_plane() const { return rows_ * row_; }
  // Copies a band of `count` planes of the output, `step` elements apart, to where columns are.
  void spread(const T* planes, int64_t step, int64_t count, int64_t band, T* to) const {
    patch_kernels<T>().pad(planes, steps_of(step).data(), count, s_.out_height, s_.out_width,
                           first_row(band), 0, {1, 1}, rows_, row_, to);
  }

  // Where the taps lie in a copied plane.
  const std::vector<int64_t>& offsets() const { return offsets_; }
  // Of a copied plane.
  DepthwiseBlock<T> block(const T* copy, int64_t plane, int64_t band) const {
    const std::vector<FlatVector>& columns = band + 1 == bands_ ? last_ : whole_;
    return {copy + plane * copied_plane(), offsets_.data(), s_.taps(), columns.data(),
            static_cast<int64_t>(columns.size())};
  }

 private:
  static constexpr int64_t kMostPlanes = 16;
  // Where planes lie that are `step` elements apart.
  static std::array<int64_t, kMostPlanes> steps_of(int64_t step) {
    std::array<int64_t, kMostPlanes> at;
    for (size_t i = 0; i < at.size(); ++i) at[i] = static_cast<int64_t>(i) * step;
    return at;
  }

  std::vector<FlatVector> columns_of(int64_t rows) const {
    std::vector<FlatVector> out;
    const int64_t end = (rows - 1) * row_ + s_.out_width;
    int64_t pixels = 0;
    for (int64_t at = 0; at < end; at += kernels_.lanes) {
      FlatVector vector{0, pixels, 0};
      for (int64_t i = 0; i < kernels_.lanes && at + i < end; ++i) {
        if ((at + i) % row_ >= s_.out_width) continue;
        vector.mask |= uint64_t{1} << i;
        ++vector.count;
      }
      pixels += vector.count;
      out.push_back(vector);
    }
    return out;
  }

  const ConvSizes& s_;
  const DepthwiseKernels<T>& kernels_;
  Phases down_, along_;
  int64_t row_;
  int64_t rows_, bands_, copied_rows_, planes_;
  std::vector<int64_t> offsets_;
  std::vector<FlatVector> whole_, last_;
};

}  // namespace kiln::cpu
