// Convolution as products whose rows are output pixels and whose columns are output channels.
//
// Note [Pixels as rows]. Where output rows are short, or strides are larger than 1, patches that
// are columns of a product waste lanes, or have to be packed. As rows they are read where they lie,
// in the padded input, one element at a time; only weights are packed. The results are transposed
// while they are in the cache, which channels enough and taps enough must pay for. Taps that see
// padding alone are left out, where they are many: pixels are then sorted by the taps that they do
// see, so that those of a tile see the same. (A sum does not change by zeros; of weights that are
// infinite, padding makes no NaN then.)
#include "kiln/backend/cpu/conv/conv_pixels.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "kiln/backend/cpu/conv/conv_direct.h"
#include "kiln/backend/cpu/conv/conv_taps.h"
#include "kiln/backend/cpu/copy/transpose.h"
#include "kiln/backend/cpu/matmul/gemm_kernels.h"
#include "kiln/backend/cpu/rounding.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/kept_data.h"
#include "kiln/core/parallel.h"

namespace kiln::cpu {
namespace {

// Pixels computed at once, about; elements of the padded input in use at once.
constexpr int64_t kPixels = 192;
constexpr int64_t kCopyElements = 64 * 1024;

// Of each output element along one dim: its taps, and a number for each such set.
struct TapsAlong {
  std::vector<std::pair<int32_t, int32_t>> taps;
  std::vector<uint64_t> kind;

  explicit TapsAlong(const TapsOfDim& along) {
    for (int64_t o = 0; o < along.out; ++o) {
      const auto [begin, end] = along.taps(o);
      taps.emplace_back(static_cast<int32_t>(begin), static_cast<int32_t>(end));
      kind.push_back(o == 0 ? 0 : kind.back() + (taps.back() != taps[taps.size() - 2] ? 1 : 0));
    }
  }
};

struct SeenTaps {
  TapsAlong depths, rows, columns;
  explicit SeenTaps(const TapsOfDims& dims)
      : depths(dims.depths), rows(dims.rows), columns(dims.columns) {}
};

// Leaving taps out costs a little for each row of them.
constexpr double kWorthSkipping = 0.95;

template <class T>
class PixelRows {
 public:
  PixelRows(const ConvSizes& s, const T* x, const ConvWeight<T>& weight, const T* bias,
            const Finish<T>& finish, T* y)
      : s_(s),
        x_(x),
        bias_(bias),
        finish_(finish),
        y_(y),
        kernels_(gemm_kernels<T>()),
        row_((s.out_width - 1) * s.geometry.stride[1] +
             s.geometry.dilation[1] * (s.geometry.kernel[1] - 1) + 1),
        reach_(s.geometry.dilation[0] * (s.geometry.kernel[0] - 1) + 1),
        panels_(ceil_div(s.out, kernels_.columns)),
        run_(channels_of_run(s)),
        skips_(TapsOfDims(s).seen() < kWorthSkipping) {
    // Whole rows, and whole images where they are small.
    const auto copied = [&](int64_t rows) {
      return run_ * ((rows - 1) * s.geometry.stride[0] + reach_) * row_;
    };
    rows_ = std::clamp<int64_t>(kPixels / s.out_width, 1, s.out_height);
    while (rows_ > 1 && copied(rows_) > kCopyElements) rows_ = (rows_ + 1) / 2;
    rows_ = ceil_div(s.out_height, ceil_div(s.out_height, rows_));
    images_ = rows_ < s.out_height
                  ? 1
                  : std::clamp<int64_t>(
                        std::min(kPixels / s.pixels(), kCopyElements / copied(rows_)), 1, s.batch);
    // Enough blocks for all threads to have nearly the same work.
    const auto blocks = [&] {
      return s.groups * ceil_div(s.batch, images_) * ceil_div(s.out_height, rows_);
    };
    while (num_threads() > 1 && images_ > 1 && blocks() < 2 * wanted_pieces())
      images_ = (images_ + 1) / 2;
    copied_rows_ = (rows_ - 1) * s.geometry.stride[0] + reach_;
    if (skips_) seen_.emplace(TapsOfDims(s));
    pack_weights(weight);
  }

  void run() const {
    const int64_t bands = ceil_div(s_.out_height, rows_), blocks = ceil_div(s_.batch, images_);
    const int64_t work = std::max<int64_t>(s_.out * s_.depth() * rows_ * s_.out_width * images_, 1);
    parallel_for(s_.groups * blocks * bands, std::max<int64_t>(kConvPieceWork / work, 1),
                 [&](int64_t begin, int64_t end) {
                   const Block block(*this);
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t image = i / bands % blocks * images_, top = i % bands * rows_;
                     block.run(i / bands / blocks, image, std::min(images_, s_.batch - image), top,
                               std::min(rows_, s_.out_height - top));
                   }
                 });
  }

 private:
  int64_t runs() const { return ceil_div(s_.in, run_); }
  int64_t channels_of(int64_t run) const { return std::min(run_, s_.in - run * run_); }
  // With room for what pack() writes beyond it.
  int64_t panel_size() const {
    return (run_ * s_.taps() * kernels_.columns + kernels_.lanes + 15) / 16 * 16;
  }

  // Panel i, by groups, runs of channels and panels of columns.
  void pack_panel(int64_t i, const ConvWeight<T>& weight, T* to) const {
    const int64_t run = i / panels_ % runs(), group = i / panels_ / runs();
    const int64_t o = i % panels_ * kernels_.columns;
    kernels_.pack(std::min<int64_t>(kernels_.columns, s_.out - o), channels_of(run) * s_.taps(),
                  weight.data + (group * s_.out + o) * s_.depth() + run * run_ * s_.taps(),
                  s_.depth(), 1, to + i * panel_size(), kernels_.columns);
  }

  void pack_weights(const ConvWeight<T>& weight) {
    using kiln::detail::KeptKey;
    const auto make = [&] {
      const int64_t panels = s_.groups * runs() * panels_;
      auto data = std::make_shared<Scratch<T>>(panels * panel_size());
      parallel_for(panels, std::max<int64_t>(kConvPieceWork / panel_size(), 1),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) pack_panel(i, weight, data->get());
                   });
      const T* const at = data->get();
      return std::shared_ptr<const void>(std::move(data), at);
    };
    if (weight.storage != nullptr) {
      const int64_t offset = weight.data - static_cast<const T*>(weight.storage->data());
      const KeptKey key{KeptKey::convolution,
                        {offset, s_.groups, s_.out, s_.depth(), -kernels_.columns, run_,
                         panel_size(), int64_t{sizeof(T)}}};
      weights_ = kiln::detail::kept_data(*weight.storage, key, make);
    }
    if (weights_ == nullptr) weights_ = make();
  }

  // What a thread needs for some rows of some images.
  class Block {
   public:
    explicit Block(const PixelRows& p)
        : p_(p),
          pixels_(p.images_ * p.rows_ * p.s_.out_width),
          planes_(p.run_),
          starts_(p.run_ * p.s_.geometry.kernel[0]),
          offsets_(pixels_),
          places_(p.skips_ ? pixels_ : 0),
          windows_(p.skips_ ? pixels_ : 0),
          order_(p.skips_ ? pixels_ : 0),
          copy_(p.images_ * p.run_ * p.copied_rows_ * p.row_ + p.kernels_.lanes),
          results_(pixels_ * p.s_.out + p.kernels_.columns) {}

    void run(int64_t group, int64_t image, int64_t images, int64_t top, int64_t rows) const {
      const ConvSizes& s = p_.s_;
      const PatchGeometry& g = s.geometry;
      const int64_t pixels = images * rows * s.out_width;
      fill_offsets(image, images, top, rows);
      PatchBlock<T> block;
      if (p_.skips_) {
        block.windows = windows_.get();
        block.kernel[0] = std::max<int64_t>(s.depths.kernel, 1);
        block.kernel[1] = g.kernel[0];
        block.c_offsets = places_.get();
      }
      block.m = pixels;
      block.n = s.out;
      block.length = g.kernel[1];
      block.a = copy_.get();
      block.a_offsets = offsets_.get();
      block.a_starts = starts_.get();
      block.a_step = g.dilation[1];
      block.b_panel = p_.panel_size();
      block.c = results_.get();
      block.c_row = s.out;
      for (int64_t run = 0; run < p_.runs(); ++run) {
        const int64_t count = p_.channels_of(run);
        for (int64_t i = 0; i < images; ++i) {
          s.find_planes((image + i) * s.groups + group, run * p_.run_, run * p_.run_ + count,
                        planes_.get());
          patch_kernels<T>().pad(x(), planes_.get(), count, s.height, s.width,
                                 top * g.stride[0] - g.padding[0], -g.padding[1], {1, 1},
                                 p_.copied_rows_, p_.row_, copy_.get() + i * image_size());
        }
        block.segments = count * g.kernel[0];
        block.first_plane = run * p_.run_ % block.kernel[0];
        block.b = static_cast<const T*>(p_.weights_.get()) +
                  (group * p_.runs() + run) * p_.panels_ * p_.panel_size();
        block.accumulate = run != 0;
        const bool last = run + 1 == p_.runs();
        block.column_bias = last && p_.bias_ != nullptr ? p_.bias_ + group * s.out : nullptr;
        p_.kernels_.patch_block(block);
      }
      for (int64_t i = 0; i < images; ++i) {
        store((image + i) * s.groups + group, top, rows,
              results_.get() + i * rows * s.out_width * s.out);
      }
    }

   private:
    const T* x() const { return p_.x_; }
    int64_t image_size() const { return p_.run_ * p_.copied_rows_ * p_.row_; }

    // Where windows begin in the copies, and where the rows of taps lie behind.
    void fill_offsets(int64_t image, int64_t images, int64_t top, int64_t rows) const {
      const PatchGeometry& g = p_.s_.geometry;
      int64_t* to = offsets_.get();
      for (int64_t i = 0; i < images; ++i) {
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t c = 0; c < p_.s_.out_width; ++c) {
            *to++ = i * image_size() + r * g.stride[0] * p_.row_ + c * g.stride[1];
          }
        }
      }
      if (p_.skips_) sort_by_window(image, images, top, rows);
      to = starts_.get();
      for (int64_t c = 0; c < p_.run_; ++c) {
        for (int64_t r = 0; r < g.kernel[0]; ++r) {
          *to++ = (c * p_.copied_rows_ + r * g.dilation[0]) * p_.row_;
        }
      }
    }

    // Puts pixels that see the same taps side by side, with their windows and where their results
    // go.
    void sort_by_window(int64_t image, int64_t images, int64_t top, int64_t rows) const {
      const auto& [depths, lines, columns] = *p_.seen_;
      const int64_t width = p_.s_.out_width, pixels = images * rows * width;
      const auto at = [](int64_t i) { return static_cast<size_t>(i); };
      const auto place = [&](int64_t pixel) {
        struct {
          size_t depth, row, column;
        } found = {at((image + pixel / (rows * width)) % p_.s_.depths.out),
                   at(top + pixel / width % rows), at(pixel % width)};
        return found;
      };
      for (int64_t pixel = 0; pixel < pixels; ++pixel) {
        const auto [depth, row, column] = place(pixel);
        order_[pixel] = {
            (depths.kind[depth] << 42) | (lines.kind[row] << 21) | columns.kind[column], pixel,
            offsets_[pixel]};
      }
      std::sort(order_.get(), order_.get() + pixels, [](const Pixel& a, const Pixel& b) {
        return a.kind != b.kind ? a.kind < b.kind : a.number < b.number;
      });
      for (int64_t i = 0; i < pixels; ++i) {
        const auto [depth, row, column] = place(order_[i].number);
        const auto& [d, r, c] = std::tie(depths.taps[depth], lines.taps[row], columns.taps[column]);
        windows_[i] = {{d.first, r.first, c.first}, {d.second, r.second, c.second}};
        offsets_[i] = order_[i].offset;
        places_[i] = order_[i].number * p_.s_.out;
      }
    }

    void store(int64_t image, int64_t top, int64_t rows, const T* results) const {
      const ConvSizes& s = p_.s_;
      const int64_t pixels = rows * s.out_width, step = s.output_step();
      T* const y = p_.y_ + s.output_at(image) + top * s.out_width;
      transpose(results, s.out, y, step, pixels, s.out);
      if (p_.finish_.is_none()) return;
      if (pixels == step) return p_.finish_(y, s.out * pixels);
      for (int64_t o = 0; o < s.out; ++o) p_.finish_(y + o * step, pixels);
    }

    struct Pixel {
      uint64_t kind;
      int64_t number, offset;
    };

    const PixelRows& p_;
    int64_t pixels_;
    Scratch<int64_t> planes_, starts_, offsets_;
    // Where taps are left out: where results go, what pixels see, and the order of both.
    Scratch<int64_t> places_;
    Scratch<PatchWindow> windows_;
    Scratch<Pixel> order_;
    Scratch<T> copy_, results_;
  };

  const ConvSizes& s_;
  const T* x_;
  const T* bias_;
  const Finish<T>& finish_;
  T* y_;
  const GemmKernels<T>& kernels_;
  int64_t row_, reach_;
  int64_t panels_;
  int64_t run_;  // channels taken at once
  bool skips_;
  std::optional<SeenTaps> seen_;
  int64_t rows_, images_, copied_rows_;
  std::shared_ptr<const void> weights_;
};

}  // namespace

template <class T>
double cost_by_pixels(const ConvSizes& s) {
  const int64_t lanes = gemm_kernels<T>().lanes;
  const auto products = static_cast<double>(ceil_div(s.out, lanes) * lanes);
  // Elements that are read serve one vector of products or two. Transposing comes once for all
  // taps.
  const double seen = TapsOfDims(s).seen();
  return (s.out <= lanes ? 1.5 : 1.25) * products * (seen < kWorthSkipping ? 1.05 * seen : 1.0) +
         12.0 * static_cast<double>(s.out) / static_cast<double>(s.depth());
}

template <class T>
void forward_by_pixels(const ConvSizes& s, const T* x, const ConvWeight<T>& weight, const T* bias,
                       const Finish<T>& finish, T* y) {
  PixelRows<T>(s, x, weight, bias, finish, y).run();
}

template double cost_by_pixels<float>(const ConvSizes&);
template double cost_by_pixels<double>(const ConvSizes&);
template void forward_by_pixels(const ConvSizes&, const float*, const ConvWeight<float>&,
                                const float*, const Finish<float>&, float*);
template void forward_by_pixels(const ConvSizes&, const double*, const ConvWeight<double>&,
                                const double*, const Finish<double>&, double*);

}  // namespace kiln::cpu
