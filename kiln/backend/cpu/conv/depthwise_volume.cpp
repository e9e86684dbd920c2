// Depthwise convolutions of volumes. The planes of a channel are copied once, with their padding
// (depthwise_copies.h); a tap of the window is then one stretch of some plane's copy. What is read
// of a plane serves all output depths that see it. Depths that are padding are left out.
#include <algorithm>
#include <vector>

#include "kiln/backend/cpu/conv/conv_taps.h"
#include "kiln/backend/cpu/conv/depthwise.h"
#include "kiln/backend/cpu/conv/depthwise_copies.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/parallel.h"

namespace kiln::cpu {
namespace {

// The copies of a channel's planes, and what each output depth sees of them.
template <class T>
class Volume {
 public:
  explicit Volume(const ConvSizes& s)
      : s_(s), depths_(TapsOfDims(s).depths), copies_(s, s.depths.size) {
    for (int64_t j = 0; j < s.depths.kernel; ++j) {
      for (const int64_t offset : copies_.offsets()) {
        offsets_.push_back(j * s.depths.dilation * copies_.copied_plane() + offset);
      }
    }
  }

  const PlaneCopies<T>& copies() const { return copies_; }
  int64_t taps() const { return s_.depths.kernel * s_.taps(); }

  // Of an output depth; the number of its first tap, whose depth is not padding, in `first`.
  DepthwiseBlock<T> block(const T* copy, int64_t depth, int64_t band, int64_t* first) const {
    const auto [begin, end] = depths_.taps(depth);
    const int64_t seen = std::max<int64_t>(end - begin, 0);
    const int64_t plane = depth * s_.depths.stride - s_.depths.padding + begin * s_.depths.dilation;
    DepthwiseBlock<T> out = copies_.block(copy, seen == 0 ? 0 : plane, band);
    out.offsets = offsets_.data();
    out.taps = seen * s_.taps();
    *first = seen == 0 ? 0 : begin * s_.taps();
    return out;
  }

  // The output depths that see each plane, and by which depth of the window.
  struct Sight {
    int64_t output, tap;
  };
  std::vector<std::vector<Sight>> sights() const {
    std::vector<std::vector<Sight>> seen(static_cast<size_t>(s_.depths.size));
    for (int64_t d = 0; d < s_.depths.out; ++d) {
      const auto [begin, end] = depths_.taps(d);
      for (int64_t t = begin; t < end; ++t) {
        const int64_t plane = d * s_.depths.stride - s_.depths.padding + t * s_.depths.dilation;
        seen[static_cast<size_t>(plane)].push_back({d, t});
      }
    }
    return seen;
  }

 private:
  const ConvSizes& s_;
  TapsOfDim depths_;
  PlaneCopies<T> copies_;
  std::vector<int64_t> offsets_;
};

}  // namespace

template <class T>
void depthwise_volume_forward(const ConvSizes& s, const T* x, const T* weight, const T* bias,
                              T* y) {
  const DepthwiseKernels<T>& kernels = depthwise_kernels<T>();
  const Volume<T> volume(s);
  const PlaneCopies<T>& copies = volume.copies();
  const auto sights = volume.sights();
  const int64_t size = s.depths.size * s.plane();  // of a channel
  const int64_t pieces = s.batch / s.depths.out * s.groups * copies.bands();
  const int64_t work =
      std::max<int64_t>(s.out * volume.taps() * s.depths.out * s.pixels() / copies.bands(), 1);
  const int64_t row = round_up(copies.spread_plane(), int64_t{kernels.lanes});  // of sums
  parallel_for(
      pieces, std::max<int64_t>(kConvPieceWork / work, 1), [&](int64_t begin, int64_t end) {
        const Scratch<T> copy(copies.room()), sums(s.depths.out * row);
        std::vector<const T*> weights;
        std::vector<T*> to;
        for (int64_t piece = begin; piece < end; ++piece) {
          const int64_t channel = piece / copies.bands(), band = piece % copies.bands();
          const int64_t n = channel / s.groups, group = channel % s.groups;
          copies.copy(x + channel * size, s.plane(), s.depths.size, band, copy.get());
          for (int64_t o = group * s.out; o < (group + 1) * s.out; ++o) {
            std::fill_n(sums.get(), s.depths.out * row, T(0));
            for (size_t plane = 0; plane < sights.size(); ++plane) {
              weights.clear();
              to.clear();
              for (const auto& [output, tap] : sights[plane]) {
                weights.push_back(weight + o * volume.taps() + tap * s.taps());
                to.push_back(sums.get() + output * row);
              }
              kernels.add(copies.block(copy.get(), static_cast<int64_t>(plane), band),
                          static_cast<int64_t>(to.size()), weights.data(), to.data());
            }
            T* const results = y + (n * s.groups * s.out + o) * s.depths.out * s.pixels() +
                               copies.first_row(band) * s.out_width;
            for (int64_t d = 0; d < s.depths.out; ++d) {
              kernels.gather(copies.block(copy.get(), 0, band), sums.get() + d * row,
                             bias == nullptr ? nullptr : bias + o, results + d * s.pixels());
            }
          }
        }
      });
}

template <class T>
void depthwise_volume_weight_grad(const ConvSizes& s, const T* x, const T* g, T* weight_grad) {
  const DepthwiseKernels<T>& kernels = depthwise_kernels<T>();
  const Volume<T> volume(s);
  const PlaneCopies<T>& copies = volume.copies();
  const int64_t size = s.out * volume.taps(), volumes = s.batch / s.depths.out;
  const int64_t work = std::max<int64_t>(size * s.batch * s.pixels(), 1);
  parallel_for(
      s.groups, std::max<int64_t>(kConvPieceWork / work, 1), [&](int64_t begin, int64_t end) {
        const Scratch<T> copy(copies.room()), spread(copies.spread_room());
        const Scratch<T> sums(size * kernels.lanes);
        std::fill_n(sums.get(), size * kernels.lanes, T(0));
        std::fill_n(weight_grad + begin * size, (end - begin) * size, T(0));
        for (int64_t group = begin; group < end; ++group) {
          int64_t summed = 0;
          for (int64_t n = 0; n < volumes; ++n) {
            for (int64_t band = 0; band < copies.bands(); ++band) {
              copies.copy(x + (n * s.groups + group) * s.depths.size * s.plane(), s.plane(),
                          s.depths.size, band, copy.get());
              for (int64_t d = 0; d < s.depths.out; ++d) {
                int64_t first = 0;
                const DepthwiseBlock<T> block = volume.block(copy.get(), d, band, &first);
                if (block.taps == 0) continue;  // of padding alone
                for (int64_t o = 0; o < s.out; ++o) {
                  const int64_t channel = (n * s.groups + group) * s.out + o;
                  copies.spread(g + (channel * s.depths.out + d) * s.pixels(), 0, 1, band,
                                spread.get());
                  kernels.correlate(block, spread.get(),
                                    sums.get() + (o * volume.taps() + first) * kernels.lanes);
                }
                summed += block.count;
                if (summed >= kLongestSum) {
                  kernels.add_up(sums.get(), size, weight_grad + group * size);
                  summed = 0;
                }
              }
            }
          }
          kernels.add_up(sums.get(), size, weight_grad + group * size);
        }
      });
}

template void depthwise_volume_forward(const ConvSizes&, const float*, const float*, const float*,
                                       float*);
template void depthwise_volume_forward(const ConvSizes&, const double*, const double*,
                                       const double*, double*);
template void depthwise_volume_weight_grad(const ConvSizes&, const float*, const float*, float*);
template void depthwise_volume_weight_grad(const ConvSizes&, const double*, const double*, double*);

}  // namespace kiln::cpu
