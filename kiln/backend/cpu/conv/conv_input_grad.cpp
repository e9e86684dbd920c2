// The gradient of a convolution's input, which is itself convolutions: of g, by the windows turned
// around, with the channels' roles exchanged. With strides there is one for each phase of the input
// (conv_phases.h): rows and columns that the same taps see. Where windows lie side by side, all
// phases are one convolution of 1 x 1 with a channel for each tap.
#include <algorithm>
#include <memory>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "kiln/backend/cpu/conv/conv.h"
#include "kiln/backend/cpu/conv/conv_kernels.h"
#include "kiln/backend/cpu/conv/conv_words.h"
#include "kiln/backend/cpu/copy/transpose.h"
#include "kiln/backend/cpu/matmul/gemm.h"
#include "kiln/backend/cpu/rounding.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/parallel.h"

namespace kiln::cpu {
namespace {

// Elements of the gradient computed at once, where phases are woven together: they stay in a cache.
constexpr int64_t kWovenElements = 512 * 1024;

// Pixels and taps of a block of patches: what they need stays in the second-level cache.
constexpr int64_t kColumnPixels = 128;
constexpr int64_t kBlockTaps = 384;

// Along one dim: the elements of a phase, first, first + stride .., and the taps that see them,
// tap, tap + tap_step .., as a convolution with stride 1.
struct PhaseConvolution {
  int64_t first = 0, elements = 0;
  int64_t tap = 0, tap_step = 1, taps = 0;
  int64_t dilation = 1, padding = 0;

  PhaseConvolution(const PatchGeometry& g, int d, int64_t size, int64_t phase) {
    const int64_t stride = g.stride[d], kernel = g.kernel[d];
    const int64_t common = std::gcd(stride, g.dilation[d]);
    // Element i of the phase is padded element i * stride + phase.
    const int64_t begin = std::max<int64_t>(ceil_div(g.padding[d] - phase, stride), 0);
    first = begin * stride + phase - g.padding[d];
    elements = first < size ? ceil_div(size - first, stride) : 0;
    while (tap < kernel && tap * g.dilation[d] % stride != phase) ++tap;
    if (tap >= kernel) return;
    tap_step = stride / common;
    taps = ceil_div(kernel - tap, tap_step);
    dilation = g.dilation[d] / common;
    padding = tap * g.dilation[d] / stride + (taps - 1) * dilation - begin;
  }
};

// A convolution of g by turned weights, which serve once.
template <class T>
void convolve_turned(const ConvSizes& s, const T* g, const T* turned, const T* bias,
                     const Finish<T>& finish, T* to) {
  if constexpr (std::is_same_v<T, bfloat16>) {
    conv_forward_of_words(s, g, turned, nullptr, nullptr, nullptr, nullptr, to);
  } else {
    conv_forward<T>(s, g, {turned}, bias, finish, to);
  }
}

// Of bf16, by words, without a bias and a finish.
template <class T>
class InputGrad {
 public:
  InputGrad(const ConvSizes& s, const T* weight, const T* g, const T* bias, const Finish<T>& finish,
            T* x_grad)
      : s_(s), weight_(weight), g_(g), bias_(bias), finish_(finish), x_grad_(x_grad) {
    for (int64_t p = 0; p < s.geometry.stride[0]; ++p) {
      down_.emplace_back(s.geometry, 0, s.height, p);
    }
    for (int64_t p = 0; p < s.geometry.stride[1]; ++p) {
      along_.emplace_back(s.geometry, 1, s.width, p);
    }
    for (const PhaseConvolution& p : along_) longest_ = std::max(longest_, p.elements);
    for (const PhaseConvolution& p : down_) rows_ = std::max(rows_, p.elements);
  }

  void run() const {
    if (s_.geometry.stride == IntPair{1, 1}) {
      return convolve(Phase(*this, down_[0], along_[0]), 0, s_.batch, x_grad_);
    }
    std::vector<Phase> phases;
    for (const PhaseConvolution& d : down_) {
      for (const PhaseConvolution& a : along_) phases.emplace_back(*this, d, a);
    }
    const int64_t planes = s_.groups * s_.in;
    const int64_t images = std::clamp<int64_t>(
        kWovenElements / std::max<int64_t>(planes * s_.plane(), 1), 1, s_.batch);
    const int64_t part = images * planes * rows_ * longest_;
    const Scratch<T> parts(part * static_cast<int64_t>(along_.size()));
    for (int64_t n = 0; n < s_.batch; n += images) {
      const int64_t count = std::min(images, s_.batch - n);
      for (size_t d = 0; d < down_.size(); ++d) {
        for (size_t a = 0; a < along_.size(); ++a) {
          convolve(phases[d * along_.size() + a], n, count,
                   parts.get() + static_cast<int64_t>(a) * part);
        }
        weave(down_[d], n, count, parts.get(), part);
      }
    }
  }

 private:
  // The convolution of g that gives a phase, and its weights: where they lie, or turned.
  struct Phase {
    ConvSizes sizes;
    TurnedTaps taps;
    std::unique_ptr<const Scratch<T>> turned;

    Phase(const InputGrad& of, const PhaseConvolution& d, const PhaseConvolution& a)
        : sizes(of.sizes_of(d, a)), taps{{}, of.s_.taps()} {
      for (int64_t r = d.taps; r-- > 0;) {
        for (int64_t t = a.taps; t-- > 0;) {
          taps.taps.push_back((d.tap + r * d.tap_step) * of.s_.geometry.kernel[1] + a.tap +
                              t * a.tap_step);
        }
      }
      if constexpr (!std::is_same_v<T, bfloat16>) {
        if (takes_turned_weights<T>(sizes)) return;
      }
      auto made =
          std::make_unique<const Scratch<T>>(of.s_.groups * of.s_.in * of.s_.out * d.taps * a.taps);
      of.turn(d, a, made->get());
      turned = std::move(made);
    }
  };

  // to[group][c][o][taps - 1 - t] = weight[group][o][c][t] for the taps of a phase.
  void turn(const PhaseConvolution& d, const PhaseConvolution& a, T* to) const {
    const int64_t taps = d.taps * a.taps;
    if (taps == 0) return;
    // A few output channels at a time: that many streams are read, and short stretches written.
    constexpr int64_t kBlock = 16;
    const int64_t blocks = ceil_div(s_.out, kBlock);
    const int64_t across = s_.geometry.kernel[1];
    const bool all = taps == s_.taps();
    parallel_for(s_.groups * blocks, std::max<int64_t>(kGrain / (kBlock * s_.in * taps), 1),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t group = i / blocks;
                     const int64_t first = i % blocks * kBlock;
                     const int64_t last = std::min(first + kBlock, s_.out);
                     for (int64_t c = 0; c < s_.in; ++c) {
                       for (int64_t o = first; o < last; ++o) {
                         const T* window = weight_ + ((group * s_.out + o) * s_.in + c) * s_.taps();
                         T* turned = to + ((group * s_.in + c) * s_.out + o) * taps + taps - 1;
                         if (all) {
                           for (int64_t t = 0; t < taps; ++t) turned[-t] = window[t];
                           continue;
                         }
                         for (int64_t r = 0; r < d.taps; ++r) {
                           const T* row = window + (d.tap + r * d.tap_step) * across + a.tap;
                           for (int64_t t = 0; t < a.taps; ++t) *turned-- = row[t * a.tap_step];
                         }
                       }
                     }
                   }
                 });
  }

  ConvSizes sizes_of(const PhaseConvolution& d, const PhaseConvolution& a) const {
    ConvSizes t = s_;
    std::swap(t.in, t.out);
    t.height = s_.out_height;
    t.width = s_.out_width;
    t.out_height = d.elements;
    t.out_width = a.elements;
    t.geometry = {t.height,
                  t.width,
                  t.out_width,
                  {d.taps, a.taps},
                  {1, 1},
                  {d.padding, a.padding},
                  {d.dilation, a.dilation}};
    return t;
  }

  // The elements of a phase of `count` images, one after another.
  void convolve(const Phase& phase, int64_t n, int64_t count, T* to) const {
    ConvSizes t = phase.sizes;
    t.batch = count;
    const T* const g = g_ + n * s_.groups * s_.out * s_.pixels();
    if (phase.turned != nullptr) {
      return convolve_turned<T>(t, g, phase.turned->get(), bias_, finish_, to);
    }
    if constexpr (!std::is_same_v<T, bfloat16>) {
      conv_forward<T>(t, g, {weight_, nullptr, &phase.taps}, bias_, finish_, to);
    }
  }

  // Puts rows of a phase together out of the phases of their columns.
  void weave(const PhaseConvolution& d, int64_t n, int64_t count, const T* parts,
             int64_t part) const {
    const int64_t planes = s_.groups * s_.in;
    const int64_t stride = s_.geometry.stride[1];
    const int64_t work = std::max<int64_t>(d.elements * s_.width, 1);
    parallel_for(count * planes, std::max<int64_t>(kGrain / work, 1),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     T* plane = x_grad_ + (n * planes + i) * s_.plane() + d.first * s_.width;
                     if constexpr (!std::is_same_v<T, bfloat16>) {
                       if (stride == 2) {
                         weave_two(d, i, parts, part, plane);
                         continue;
                       }
                     }
                     for (int64_t p = 0; p < stride; ++p) {
                       const PhaseConvolution& a = along_[static_cast<size_t>(p)];
                       const T* from = parts + p * part + i * d.elements * a.elements;
                       for (int64_t r = 0; r < d.elements; ++r, from += a.elements) {
                         T* to = plane + r * s_.geometry.stride[0] * s_.width + a.first;
                         for (int64_t c = 0; c < a.elements; ++c) to[c * stride] = from[c];
                       }
                     }
                   }
                 });
  }

  // The same of plane i and two phases.
  void weave_two(const PhaseConvolution& d, int64_t i, const T* parts, int64_t part,
                 T* plane) const {
    const bool swapped = along_[0].first > along_[1].first;
    const PhaseConvolution& even = along_[swapped ? 1 : 0];
    const PhaseConvolution& odd = along_[swapped ? 0 : 1];
    patch_kernels<T>().weave(parts + (swapped ? part : 0) + i * d.elements * even.elements,
                             parts + (swapped ? 0 : part) + i * d.elements * odd.elements,
                             d.elements, s_.width, s_.geometry.stride[0] * s_.width, plane);
  }

  const ConvSizes& s_;
  const T* weight_;
  const T* g_;
  const T* bias_;
  const Finish<T>& finish_;  // of elements, wherever they lie
  T* x_grad_;
  std::vector<PhaseConvolution> down_, along_;
  int64_t longest_ = 0, rows_ = 0;
};

// Whether each element is in one window, as in most transposed convolutions that enlarge images.
bool is_tiled(const ConvSizes& s) {
  const PatchGeometry& g = s.geometry;
  return g.kernel == g.stride && g.stride != IntPair{1, 1} && g.padding == IntPair{0, 0} &&
         g.dilation == IntPair{1, 1} && s.height == s.out_height * g.stride[0] &&
         s.width == s.out_width * g.stride[1];
}

template <class T>
void input_grad_by_tiles(const ConvSizes& s, const T* weight, const T* g, const T* bias,
                         const Finish<T>& finish, T* x_grad) {
  const PatchGeometry& geometry = s.geometry;
  const int64_t down = geometry.stride[0], along = geometry.stride[1];
  // A channel of `s.out` elements for each channel and tap, some of them at a time.
  constexpr int64_t kBlock = 64;
  const int64_t blocks = ceil_div(s.depth(), kBlock);
  const Scratch<T> turned(s.groups * s.depth() * s.out);
  parallel_for(
      s.groups * blocks, std::max<int64_t>(kGrain / (kBlock * s.out), 1),
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t first = i % blocks * kBlock, group = i / blocks * s.out * s.depth();
          transpose(weight + group + first, s.depth(), turned.get() + group + first * s.out, s.out,
                    s.out, std::min(kBlock, s.depth() - first));
        }
      });
  const int64_t planes = s.groups * s.in;
  const Scratch<T> biases(bias == nullptr ? 0 : planes * s.taps());  // one for each tap
  for (int64_t i = 0; bias != nullptr && i < planes; ++i) {
    std::fill_n(biases.get() + i * s.taps(), s.taps(), bias[i]);
  }
  ConvSizes t = s;
  t.in = s.out;
  t.out = s.depth();
  t.height = s.out_height;
  t.width = s.out_width;
  t.geometry = {t.height, t.width, t.width, {1, 1}, {1, 1}, {0, 0}, {1, 1}};
  const int64_t images =
      std::clamp<int64_t>(kWovenElements / std::max<int64_t>(planes * s.plane(), 1), 1, s.batch);
  const Scratch<T> parts(images * planes * s.plane());
  for (int64_t n = 0; n < s.batch; n += images) {
    t.batch = std::min(images, s.batch - n);
    conv_forward<T>(t, g + n * s.groups * s.out * s.pixels(), {turned.get()},
                    bias == nullptr ? nullptr : biases.get(), finish, parts.get());
    // Rows of a plane out of those of its taps.
    parallel_for(t.batch * planes, std::max<int64_t>(kGrain / s.plane(), 1),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin * down; i < end * down; ++i) {
                     const T* from = parts.get() + i * along * s.pixels();
                     T* to = x_grad + (n * planes + i / down) * s.plane() + i % down * s.width;
                     if (along == 2) {
                       patch_kernels<T>().weave(from, from + s.pixels(), s.out_height, s.width,
                                                down * s.width, to);
                       continue;
                     }
                     for (int64_t r = 0; r < s.out_height; ++r, to += down * s.width) {
                       for (int64_t p = 0; p < along; ++p) {
                         const T* row = from + p * s.pixels() + r * s.out_width;
                         for (int64_t c = 0; c < s.out_width; ++c) to[c * along + p] = row[c];
                       }
                     }
                   }
                 });
  }
}

// Or each block of pixels gives the gradient of its patches, which is added to where they came
// from. A piece owns some channels of one image, so that no two pieces add to the same element.
template <class T>
void input_grad_by_patches(const ConvSizes& s, const T* weight, const T* g, const T* bias,
                           const Finish<T>& finish, T* x_grad) {
  const int64_t taps = s.taps();
  const int64_t images = s.batch * s.groups;
  const int64_t channels = std::clamp<int64_t>(
      std::min(kBlockTaps / taps, ceil_div(s.in, ceil_div(8, images))), 1, s.in);
  const int64_t parts = ceil_div(s.in, channels);
  const int64_t work = std::max<int64_t>(channels * taps * s.out * s.pixels(), 1);
  parallel_for(
      images * parts, std::max<int64_t>(kConvPieceWork / work, 1), [&](int64_t begin, int64_t end) {
        const Scratch<T> patches(channels * taps * kColumnPixels);
        for (int64_t i = begin; i < end; ++i) {
          const int64_t image = i / parts;
          const int64_t channel = i % parts * channels;
          const int64_t count = std::min(channels, s.in - channel);
          T* planes = x_grad + (image * s.in + channel) * s.plane();
          for (int64_t c = 0; c < count; ++c) {
            const int64_t of = image % s.groups * s.in + channel + c;
            std::fill_n(planes + c * s.plane(), s.plane(), bias == nullptr ? T(0) : bias[of]);
          }
          Gemm<T> product;
          product.m = count * taps;
          product.k = s.out;
          product.a = {weight + (image % s.groups * s.out * s.in + channel) * taps, 1, s.depth()};
          product.c = patches.get();
          product.c_row = kColumnPixels;
          for (int64_t p = 0; p < s.pixels(); p += kColumnPixels) {
            product.n = std::min(kColumnPixels, s.pixels() - p);
            product.b = {g + image * s.out * s.pixels() + p, s.pixels(), 1};
            gemm_serial(product);
            patch_kernels<T>().add(s.geometry, patches.get(), kColumnPixels, count, p, product.n,
                                   planes);
          }
          if (!finish.is_none()) finish(planes, count * s.plane());
        }
      });
}

// Of one pixel each, whose windows are whole images: a product of the weights.
template <class T>
void input_grad_of_images(const ConvSizes& s, const T* weight, const T* g, const T* bias,
                          const Finish<T>& finish, T* x_grad) {
  const int64_t depth = s.depth(), all = s.groups * depth;
  const Scratch<T> biases(bias == nullptr ? 0 : all);  // one for each element
  for (int64_t c = 0; bias != nullptr && c < s.groups * s.in; ++c) {
    std::fill_n(biases.get() + c * s.taps(), s.taps(), bias[c]);
  }
  for (int64_t group = 0; group < s.groups; ++group) {
    Gemm<T> product;
    product.m = s.batch;
    product.n = depth;
    product.k = s.out;
    product.a = {g + group * s.out, s.groups * s.out, 1};
    product.b = {weight + group * s.out * depth, depth, 1};
    product.c = x_grad + group * depth;
    product.c_row = all;
    if (bias != nullptr) product.column_bias = biases.get() + group * depth;
    gemm(product);
  }
  finish_all(finish, x_grad, s.batch * all);
}

// With many channels, products take most of the time, and those of all phases at once are better,
// unless each phase has taps enough.
bool phases_pay(const ConvSizes& s) {
  const IntPair& stride = s.geometry.stride;
  return stride == IntPair{1, 1} || s.out <= 16 || s.taps() >= 3 * stride[0] * stride[1];
}

// Of elements that nothing gives to.
template <class T>
void fill_with_bias(const ConvSizes& s, const T* bias, const Finish<T>& finish, T* x_grad) {
  const int64_t planes = s.groups * s.in;
  for (int64_t i = 0; i < s.batch * planes; ++i) {
    std::fill_n(x_grad + i * s.plane(), s.plane(), bias == nullptr ? T(0) : bias[i % planes]);
  }
  finish_all(finish, x_grad, s.batch * planes * s.plane());
}

// With strides of 1: the convolution of g by the turned weights, with the roles of the channels
// exchanged and what is left of the padding.
template <class T>
void volume_input_grad(const ConvSizes& s, const T* weight, const T* g, T* x_grad) {
  const int64_t in = s.in / s.depths.kernel, taps = s.depths.kernel * s.taps();
  const Scratch<T> turned(s.groups * in * s.out * taps);
  parallel_for(s.groups * in, std::max<int64_t>(kGrain / (s.out * taps), 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t group = i / in, c = i % in;
                   T* to = turned.get() + i * s.out * taps;
                   for (int64_t o = 0; o < s.out; ++o, to += taps) {
                     const T* from = weight + ((group * s.out + o) * in + c) * taps;
                     std::reverse_copy(from, from + taps, to);
                   }
                 }
               });
  ConvSizes t = s;
  t.batch = s.batch / s.depths.out * s.depths.size;
  t.in = s.out * s.depths.kernel;
  t.out = in;
  t.height = s.out_height;
  t.width = s.out_width;
  t.out_height = s.height;
  t.out_width = s.width;
  const PatchGeometry& p = s.geometry;
  t.geometry = {t.height, t.width, t.out_width, p.kernel, p.stride, {}, p.dilation};
  for (size_t d = 0; d < 2; ++d) {
    t.geometry.padding[d] = p.dilation[d] * (p.kernel[d] - 1) - p.padding[d];
  }
  std::swap(t.depths.size, t.depths.out);
  t.depths.padding = s.depths.dilation * (s.depths.kernel - 1) - s.depths.padding;
  conv_forward<T>(t, g, {turned.get()}, nullptr, {}, x_grad);
}

}  // namespace

template <class T>
void conv_input_grad(const ConvSizes& s, const T* weight, const T* g, const T* bias,
                     const Finish<T>& finish, T* x_grad) {
  if (s.is_volume()) return volume_input_grad(s, weight, g, x_grad);
  if (s.batch * s.groups * s.in * s.plane() == 0) return;
  if (s.out == 0 || s.pixels() == 0 || s.taps() == 0)
    return fill_with_bias(s, bias, finish, x_grad);
  if (is_linear(s)) return input_grad_of_images(s, weight, g, bias, finish, x_grad);
  if (is_tiled(s)) return input_grad_by_tiles(s, weight, g, bias, finish, x_grad);
  if (!phases_pay(s)) return input_grad_by_patches(s, weight, g, bias, finish, x_grad);
  InputGrad<T>(s, weight, g, bias, finish, x_grad).run();
}

void conv_input_grad_of_words(const ConvSizes& s, const bfloat16* weight, const bfloat16* g,
                              bfloat16* x_grad) {
  if (s.batch * s.groups * s.in * s.plane() == 0) return;
  InputGrad<bfloat16>(s, weight, g, nullptr, Finish<bfloat16>(), x_grad).run();
}

template void conv_input_grad(const ConvSizes&, const float*, const float*, const float*,
                              const Finish<float>&, float*);
template void conv_input_grad(const ConvSizes&, const double*, const double*, const double*,
                              const Finish<double>&, double*);

}  // namespace kiln::cpu
