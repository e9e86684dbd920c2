// Depthwise convolutions and the gradient of their weights. The phases of a plane (Note [Patches])
// are copied with their padding; each tap is then one stretch of the copy, rows and all, and the
// columns between the rows of the output are left out when results are stored.
#include "kiln/backend/cpu/conv/depthwise.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <vector>

#include "kiln/backend/cpu/conv/conv_kernels.h"
#include "kiln/backend/cpu/conv/conv_phases.h"
#include "kiln/backend/cpu/conv/depthwise_kernels.h"
#include "kiln/backend/cpu/rounding.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/parallel.h"

namespace kiln::cpu {
namespace {

// Elements of a copy: with the output they stay in the first-level cache.
constexpr int64_t kDepthwiseCopyElements = 4096;
// Products that one lane adds up before lanes are added to the sum of all.
constexpr int64_t kLongestSum = 256;

// Copies of some planes, in bands of output rows; of several planes at once where they are small.
template <class T>
class PlaneCopies {
 public:
  explicit PlaneCopies(const ConvSizes& s)
      : s_(s),
        kernels_(depthwise_kernels<T>()),
        down_(s.geometry.kernel[0], s.geometry.stride[0], s.geometry.dilation[0]),
        along_(s.geometry.kernel[1], s.geometry.stride[1], s.geometry.dilation[1]),
        row_(s.out_width + along_.reach - 1) {
    const int64_t phases = down_.count() * along_.count();
    const int64_t affordable =
        std::max<int64_t>(kDepthwiseCopyElements / (row_ * phases) - down_.reach + 1, down_.reach);
    rows_ = ceil_div(s.out_height, ceil_div(s.out_height, affordable));
    bands_ = ceil_div(s.out_height, rows_);
    copied_rows_ = rows_ + down_.reach - 1;
    const int64_t size = copied_rows_ * row_;
    planes_ = bands_ > 1 ? 1
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
        patch_kernels<T>().pad(planes, at.data(), count, s_.height, s_.width,
                               first_row(band) * g.stride[0] + r - g.padding[0], c - g.padding[1],
                               g.stride, copied_rows_, row_, to);
        to += planes_ * copied_rows_ * row_;
      }
    }
  }

  int64_t spread_room() const { return planes_ * rows_ * row_ + row_ + 2 * kernels_.lanes; }
  int64_t spread_plane() const { return rows_ * row_; }
  // Copies a band of `count` planes of the output, `step` elements apart, to where columns are.
  void spread(const T* planes, int64_t step, int64_t count, int64_t band, T* to) const {
    patch_kernels<T>().pad(planes, steps_of(step).data(), count, s_.out_height, s_.out_width,
                           first_row(band), 0, {1, 1}, rows_, row_, to);
  }

  // Of a copied plane.
  DepthwiseBlock<T> block(const T* copy, int64_t plane, int64_t band) const {
    const std::vector<FlatVector>& columns = band + 1 == bands_ ? last_ : whole_;
    return {copy + plane * copied_rows_ * row_, offsets_.data(), s_.taps(), columns.data(),
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

constexpr int64_t kRowsAtOnce = 4;  // of apply_plane

// Whether apply_plane knows the kernel.
template <class T>
bool is_by_rows(const ConvSizes& s) {
  const PatchGeometry& g = s.geometry;
  const int64_t side = g.kernel[0], stride = g.stride[0];
  return depthwise_kernels<T>().apply_plane != nullptr && (side == 3 || side == 5 || side == 7) &&
         side == g.kernel[1] && (stride == 1 || stride == 2) && stride == g.stride[1] &&
         g.dilation == IntPair{1, 1} && s.out_height >= kRowsAtOnce;
}

template <class T>
void forward_by_rows(const ConvSizes& s, const T* x, const T* weight, const T* bias,
                     const Finish<T>& finish, T* y) {
  const PatchGeometry& g = s.geometry;
  const DepthwiseKernels<T>& kernels = depthwise_kernels<T>();
  constexpr int64_t kBandPixels = 8192;
  const int64_t wanted = ceil_div(s.out_height * s.out_width, kBandPixels);
  const int64_t bands = std::clamp<int64_t>(wanted, 1, s.out_height / kRowsAtOnce);
  const int64_t pieces = s.batch * s.groups * s.out * bands;
  const int64_t work = std::max<int64_t>(s.out_height * s.out_width * s.taps() / bands, 1);
  parallel_for(pieces, std::max<int64_t>(kConvPieceWork / work, 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t piece = begin; piece < end; ++piece) {
                   const int64_t band = piece % bands, out = piece / bands;
                   const int64_t first = band * s.out_height / bands;
                   const int64_t last = (band + 1) * s.out_height / bands;
                   const int64_t channel = out % (s.groups * s.out);
                   const DepthwisePlane<T> plane = {x + out / s.out * s.plane(),
                                                    s.height,
                                                    s.width,
                                                    g.kernel[0],
                                                    g.stride[0],
                                                    g.padding[0],
                                                    g.padding[1],
                                                    s.out_width,
                                                    finish.in_tile()};
                   T* const to = y + out * s.pixels() + first * s.out_width;
                   kernels.apply_plane(plane, first, last - first, weight + channel * s.taps(),
                                       bias == nullptr ? nullptr : bias + channel, to);
                   if (plane.in_tile == nullptr && !finish.is_none())
                     finish(to, (last - first) * s.out_width);
                 }
               });
}

}  // namespace

template <class T>
void depthwise_forward(const ConvSizes& s, const T* x, const T* weight, const T* bias,
                       const Finish<T>& finish, T* y) {
  // Rows of much less than a vector would leave lanes idle.
  const bool narrow = 4 * s.out_width < 3 * depthwise_kernels<T>().lanes;
  if (is_by_channels<T>(s) && (narrow || !is_by_rows<T>(s))) {
    return depthwise_by_channels(s, x, weight, bias, finish, y);
  }
  if (is_by_rows<T>(s)) return forward_by_rows(s, x, weight, bias, finish, y);
  const DepthwiseKernels<T>& kernels = depthwise_kernels<T>();
  const PlaneCopies<T> copies(s);
  const int64_t planes = s.batch * s.groups;
  const int64_t pieces = ceil_div(planes, copies.planes()) * copies.bands();
  const int64_t work = std::max<int64_t>(planes * s.out * s.taps() * s.pixels() / pieces, 1);
  parallel_for(
      pieces, std::max<int64_t>(kConvPieceWork / work, 1), [&](int64_t begin, int64_t end) {
        const Scratch<T> copy(copies.room());
        for (int64_t piece = begin; piece < end; ++piece) {
          const int64_t first = piece / copies.bands() * copies.planes();
          const int64_t band = piece % copies.bands();
          const int64_t count = std::min(copies.planes(), planes - first);
          copies.copy(x + first * s.plane(), s.plane(), count, band, copy.get());
          for (int64_t i = 0; i < count; ++i) {
            const DepthwiseBlock<T> block = copies.block(copy.get(), i, band);
            const int64_t channel = (first + i) % s.groups * s.out;
            T* to = y + (first + i) * s.out * s.pixels() + copies.first_row(band) * s.out_width;
            for (int64_t o = 0; o < s.out; ++o) {
              kernels.apply(block, weight + (channel + o) * s.taps(),
                            bias == nullptr ? nullptr : bias + channel + o, to + o * s.pixels());
              if (!finish.is_none()) finish(to + o * s.pixels(), copies.rows(band) * s.out_width);
            }
          }
        }
      });
}

template <class T>
void depthwise_weight_grad(const ConvSizes& s, const T* x, const T* g, T* weight_grad) {
  const DepthwiseKernels<T>& kernels = depthwise_kernels<T>();
  const PlaneCopies<T> copies(s);
  const int64_t size = s.out * s.taps();
  const int64_t work = std::max<int64_t>(size * s.batch * s.pixels(), 1);
  parallel_for(s.groups, std::max<int64_t>(kConvPieceWork / work, 1),
               [&](int64_t begin, int64_t end) {
                 const Scratch<T> copy(copies.room());
                 const Scratch<T> spread(copies.spread_room());
                 const Scratch<T> sums(size * kernels.lanes);
                 std::fill_n(sums.get(), size * kernels.lanes, T(0));
                 std::fill_n(weight_grad + begin * size, (end - begin) * size, T(0));
                 for (int64_t group = begin; group < end; ++group) {
                   int64_t summed = 0;
                   for (int64_t n = 0; n < s.batch; n += copies.planes()) {
                     const int64_t count = std::min(copies.planes(), s.batch - n);
                     for (int64_t band = 0; band < copies.bands(); ++band) {
                       copies.copy(x + (n * s.groups + group) * s.plane(), s.groups * s.plane(),
                                   count, band, copy.get());
                       for (int64_t o = 0; o < s.out; ++o) {
                         copies.spread(g + ((n * s.groups + group) * s.out + o) * s.pixels(),
                                       s.groups * s.out * s.pixels(), count, band, spread.get());
                         for (int64_t i = 0; i < count; ++i) {
                           kernels.correlate(copies.block(copy.get(), i, band),
                                             spread.get() + i * copies.spread_plane(),
                                             sums.get() + o * s.taps() * kernels.lanes);
                         }
                       }
                       summed += count * copies.block(copy.get(), 0, band).count;
                       if (summed >= kLongestSum) {
                         kernels.add_up(sums.get(), size, weight_grad + group * size);
                         summed = 0;
                       }
                     }
                   }
                   kernels.add_up(sums.get(), size, weight_grad + group * size);
                 }
               });
}

template void depthwise_forward(const ConvSizes&, const float*, const float*, const float*,
                                const Finish<float>&, float*);
template void depthwise_forward(const ConvSizes&, const double*, const double*, const double*,
                                const Finish<double>&, double*);
template void depthwise_weight_grad(const ConvSizes&, const float*, const float*, float*);
template void depthwise_weight_grad(const ConvSizes&, const double*, const double*, double*);

}  // namespace kiln::cpu
