// Depthwise convolutions and the gradient of their weights. The phases of a plane (Note [Patches])
// are copied with their padding; each tap is then one stretch of the copy, rows and all, and the
// columns between the rows of the output are left out when results are stored.
#include "kiln/backend/cpu/conv/depthwise.h"

#include <algorithm>

#include "kiln/backend/cpu/conv/depthwise_copies.h"
#include "kiln/backend/cpu/conv/depthwise_kernels.h"
#include "kiln/backend/cpu/rounding.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/parallel.h"

namespace kiln::cpu {
namespace {

// Whether rows are much less than a vector, and would leave lanes idle.
template <class T>
bool is_narrow(const ConvSizes& s) {
  return 4 * s.out_width < 3 * depthwise_kernels<T>().lanes;
}

template <class T>
void forward_by_rows(const ConvSizes& s, const T* x, const T* weight, const T* bias,
                     const Finish<T>& finish, T* y) {
  const PatchGeometry& g = s.geometry;
  const DepthwiseKernels<T>& kernels = depthwise_kernels<T>();
  constexpr int64_t kBandPixels = 8192;
  const int64_t wanted = ceil_div(s.out_height * s.out_width, kBandPixels);
  const int64_t bands = std::clamp<int64_t>(wanted, 1, s.out_height / kDepthwiseRows);
  const int64_t pieces = s.batch * s.groups * s.out * bands;
  const int64_t work = std::max<int64_t>(s.out_height * s.out_width * s.taps() / bands, 1);
  DepthwisePlanes<T> planes;
  planes.first = {
      x,           s.height,        s.width, g.kernel[0], g.stride[0], g.padding[0], g.padding[1],
      s.out_width, finish.in_tile()};
  planes.out_height = s.out_height;
  planes.channels = s.groups * s.out;
  planes.outputs = s.out;
  planes.bands = bands;
  planes.result_plane = s.pixels();
  planes.weight = weight;
  planes.bias = bias;
  planes.y = y;
  parallel_for(pieces, std::max<int64_t>(kConvPieceWork / work, 1),
               [&](int64_t begin, int64_t end) {
                 if (finish.is_none() || finish.in_tile() != nullptr) {
                   return kernels.apply_planes(planes, begin, end);
                 }
                 for (int64_t piece = begin; piece < end; ++piece) {
                   kernels.apply_planes(planes, piece, piece + 1);
                   const int64_t band = piece % bands, first = band * s.out_height / bands;
                   finish(y + piece / bands * s.pixels() + first * s.out_width,
                          ((band + 1) * s.out_height / bands - first) * s.out_width);
                 }
               });
}

}  // namespace

template <class T>
bool is_by_rows(const ConvSizes& s) {
  const PatchGeometry& g = s.geometry;
  const int64_t side = g.kernel[0], stride = g.stride[0];
  return depthwise_kernels<T>().apply_planes != nullptr && (side == 3 || side == 5 || side == 7) &&
         side == g.kernel[1] && (stride == 1 || stride == 2) && stride == g.stride[1] &&
         g.dilation == IntPair{1, 1} && s.out_height >= kDepthwiseRows &&
         !(is_narrow<T>(s) && is_by_channels<T>(s));
}

template <class T>
void depthwise_forward(const ConvSizes& s, const T* x, const T* weight, const T* bias,
                       const Finish<T>& finish, T* y) {
  if (is_by_rows<T>(s)) return forward_by_rows(s, x, weight, bias, finish, y);
  if (is_by_channels<T>(s)) return depthwise_by_channels(s, x, weight, bias, finish, y);
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

template bool is_by_rows<float>(const ConvSizes&);
template bool is_by_rows<double>(const ConvSizes&);
template void depthwise_forward(const ConvSizes&, const float*, const float*, const float*,
                                const Finish<float>&, float*);
template void depthwise_forward(const ConvSizes&, const double*, const double*, const double*,
                                const Finish<double>&, double*);
template void depthwise_weight_grad(const ConvSizes&, const float*, const float*, float*);
template void depthwise_weight_grad(const ConvSizes&, const double*, const double*, double*);

}  // namespace kiln::cpu
