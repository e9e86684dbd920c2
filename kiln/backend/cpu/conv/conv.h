// Convolution of row-major tensors in f32 and f64. Internal to the Cpu backend.
#pragma once

#include <algorithm>
#include <vector>

#include "kiln/backend/cpu/conv/conv_kernels.h"
#include "kiln/backend/cpu/elementwise/finish.h"
#include "kiln/core/shape.h"
#include "kiln/core/storage.h"

namespace kiln::cpu {

// Multiply-adds that make a piece of work worth handing out.
inline constexpr int64_t kConvPieceWork = 64 * 1024;

// The sizes of one convolution.
//
// Note [Volumes]
// A convolution of volumes is one of frames: a frame for each output depth, whose channels are the
// depths that its window meets, of each channel of the volume in turn. Frames share their planes
// and are never made: find_planes() says where the planes lie, and the results of a frame's
// channels lie a volume apart.
struct ConvSizes {
  ConvSizes(const Shape& x, const Shape& weight, const ConvOptions& options);
  ConvSizes(const Shape& x, const Shape& weight, const Conv3dOptions& options);

  int64_t batch, groups;  // of a volume's: frames of all volumes
  int64_t in, out;        // channels of one group
  int64_t height, width;
  int64_t out_height, out_width;
  PatchGeometry geometry;
  // In depth; a kernel of 0 where there is none.
  struct Depths {
    int64_t size = 1, out = 1;
    int64_t kernel = 0, stride = 1, padding = 0, dilation = 1;
    bool operator==(const Depths&) const = default;
  } depths;

  bool operator==(const ConvSizes&) const = default;

  int64_t pixels() const { return out_height * out_width; }  // of an output plane
  int64_t plane() const { return height * width; }           // of an input plane
  int64_t taps() const { return geometry.kernel[0] * geometry.kernel[1]; }
  int64_t depth() const { return in * taps(); }  // products in an output element
  bool is_volume() const { return depths.kernel != 0; }

  // Of image i, which is group i % groups of frame i / groups: where its results begin in y, and
  // how far its channels are apart there.
  int64_t output_at(int64_t image) const {
    if (!is_volume()) return image * out * pixels();
    const int64_t frame = image / groups, volume = frame / depths.out;
    return ((volume * groups + image % groups) * out * depths.out + frame % depths.out) * pixels();
  }
  int64_t output_step() const { return depths.out * pixels(); }

  // Where an image's channels [begin, end) lie in x; -1 for those that are padding.
  void find_planes(int64_t image, int64_t begin, int64_t end, int64_t* to) const {
    if (!is_volume()) {
      for (int64_t c = begin; c < end; ++c) *to++ = (image * in + c) * plane();
      return;
    }
    for (int64_t c = begin; c < end; ++c) {
      const int64_t depth = first_depth(image) + c % depths.kernel * depths.dilation;
      const bool exists = depth >= 0 && depth < depths.size;
      *to++ =
          exists ? (first_plane(image) + c / depths.kernel * depths.size + depth) * plane() : -1;
    }
  }
  // Of a volume: the depth that a frame's window begins with, and the first channel's first plane.
  int64_t first_depth(int64_t image) const {
    return image / groups % depths.out * depths.stride - depths.padding;
  }
  int64_t first_plane(int64_t image) const {
    const int64_t volume = image / groups / depths.out;
    return (volume * groups + image % groups) * (in / depths.kernel) * depths.size;
  }
};

// Channels whose taps are summed between visits to memory: all in one run, or in runs of nearly
// equal length; of volumes, whole kernels. Every way to convolve has these runs, and adds the bias
// to the last: so that all give the same bits, for the number of threads is one reason to take one
// or another.
inline int64_t channels_of_run(const ConvSizes& s) {
  constexpr int64_t kDepth = 640;  // products of a run, about
  const int64_t unit = std::max<int64_t>(s.depths.kernel, 1), units = s.in / unit;
  const int64_t of_unit = s.taps() * unit;
  const int64_t wanted = s.is_volume() ? (kDepth + of_unit / 2) / of_unit : kDepth / of_unit;
  const int64_t most = std::clamp<int64_t>(wanted, 1, units);
  const int64_t runs = (units + most - 1) / most;
  return (units + runs - 1) / runs * unit;
}

// f<float or double>().
template <class F>
void visit_real(DType dtype, F&& f) {
  if (dtype == DType::f64) {
    f.template operator()<double>();
  } else {
    f.template operator()<float>();
  }
}

// Whether each output pixel sees the input pixel in its own place and nothing else.
inline bool sees_whole_planes(const ConvSizes& s) {
  const PatchGeometry& g = s.geometry;
  return s.taps() == 1 && g.stride == IntPair{1, 1} && g.padding == IntPair{0, 0} &&
         s.out_width == s.width && s.out_height == s.height;
}

// Whether one window covers each image, and nothing else.
inline bool is_linear(const ConvSizes& s) {
  const PatchGeometry& g = s.geometry;
  return !s.is_volume() && s.pixels() == 1 && g.padding == IntPair{0, 0} &&
         g.dilation == IntPair{1, 1} && s.height == g.kernel[0] && s.width == g.kernel[1];
}

// Weights of another convolution, in the order in which the gradient of its input has them: the
// channels' roles are exchanged, and of `all` taps of a window these are taken.
struct TurnedTaps {
  std::vector<int64_t> taps;
  int64_t all;
};

// Weights, and the storage that holds them, beside which their packed form may be kept (Note [Kept
// data]); null for those that nobody uses again. With `turned`, element (group, o, c, t) is
// data[((group * in + c) * out + o) * all + taps[t]].
template <class T>
struct ConvWeight {
  const T* data;
  const Storage* storage = nullptr;
  const TurnedTaps* turned = nullptr;
};

// Tells the forms apart that a storage's weights are kept in.
template <class T>
int64_t form_of(const ConvWeight<T>&) {
  return sizeof(T);
}

// Whether turned weights are taken as they lie: by products of patches, and not in another way.
template <class T>
bool takes_turned_weights(const ConvSizes& sizes);

// y = conv(x, weight) + bias (may be null), finished while it is in the cache.
template <class T>
void conv_forward(const ConvSizes& sizes, const T* x, const ConvWeight<T>& weight, const T* bias,
                  const Finish<T>& finish, T* y);
// x_grad = its transpose of g, + bias of x's channels (may be null), finished.
template <class T>
void conv_input_grad(const ConvSizes& sizes, const T* weight, const T* g, const T* bias,
                     const Finish<T>& finish, T* x_grad);
template <class T>
void conv_weight_grad(const ConvSizes& sizes, const T* x, const T* g, T* weight_grad);

}  // namespace kiln::cpu
