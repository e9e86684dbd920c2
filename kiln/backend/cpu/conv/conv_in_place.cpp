// Convolution by patches in place: Note [Patches].
#include <tuple>
#include <type_traits>

#include "kiln/backend/cpu/conv/conv_direct.h"
#include "kiln/backend/cpu/conv/packed_weights.h"
#include "kiln/backend/cpu/matmul/gemm_words.h"

namespace kiln::cpu {
namespace {

template <class T>
class InPlaceConvolution {
 public:
  template <class Weight>
  InPlaceConvolution(const ConvSizes& s, const Bands& bands, const GemmKernels<T>& kernels,
                     const ConvInput<T>& x, const Weight& weight, const T* bias,
                     const ConvOutput<T>& out)
      : s_(s),
        bands_(bands),
        x_(x.data),
        halves_(x.halves),
        bias_(bias),
        out_(out),
        kernels_(kernels),
        weights_(s, kernels, weight),
        whole_(vectors(bands.band(0, s)), pieces(bands.band(0, s))),
        last_(vectors(bands.band(0, s)), pieces(bands.band(0, s))),
        in_x_(s.is_volume() ? s.depth() : weights_.longest_run()),
        in_copy_(weights_.longest_run()),
        copied_rows_(bands.rows + bands.down.reach - 1),
        parts_(parts(s, bands)) {
    bands.fill(whole_, bands.band(0, s), s);
    bands.fill(last_, bands.band(bands.count - 1, s), s);
    const int64_t longest = weights_.longest_run() / s.taps();
    if (s.is_volume()) {
      fill_offsets(in_x_.get(), s.in, s.width, [&](int64_t c) {
        const ConvSizes::Depths& d = s.depths;
        return (c / d.kernel * d.size + c % d.kernel * d.dilation) * s.plane();
      });
    } else {
      fill_offsets(in_x_.get(), longest, s.width, [&](int64_t c) { return c * s.plane(); });
    }
    fill_offsets(in_copy_.get(), longest, bands.row,
                 [&](int64_t c) { return c * copied_rows_ * bands.row; });
  }

  void run() {
    const int64_t count = s_.batch * s_.groups * bands_.count * parts_;
    const int64_t work =
        std::max<int64_t>(s_.out * s_.depth() * bands_.rows * bands_.width / parts_, 1);
    parallel_for(count, std::max<int64_t>(kConvPieceWork / work, 1),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t band = i / parts_;
                     run_band(band / bands_.count, band % bands_.count, i % parts_);
                   }
                 });
  }

 private:
  // In how many parts the channels are computed, where there are not bands enough for all threads:
  // one image of few rows. Each part copies what it sees of the input, which many channels pay for.
  int64_t parts(const ConvSizes& s, const Bands& bands) const {
    constexpr int64_t kLeastPanels = 3;
    const int64_t bands_of_all = std::max<int64_t>(s.batch * s.groups * bands.count, 1);
    return std::clamp<int64_t>(ceil_div(wanted_pieces(), bands_of_all), 1,
                               std::max<int64_t>(weights_.panels() / kLeastPanels, 1));
  }

  int64_t vectors(const Bands::Band& band) const { return bands_.panels(band) * 2; }
  // Every row of a band touches one vector more than it has.
  int64_t pieces(const Bands::Band& band) const { return vectors(band) + band.rows; }

  // Where the taps of `channels` lie, from the first pixel's window on: in planes, or phases of
  // them, at plane_at(number).
  template <class F>
  void fill_offsets(int64_t* to, int64_t channels, int64_t row, const F& plane_at) const {
    const PatchGeometry& g = s_.geometry;
    const auto& [down, along] = std::tie(bands_.down, bands_.along);
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t r = 0; r < g.kernel[0]; ++r) {
        for (int64_t s = 0; s < g.kernel[1]; ++s) {
          const auto i = static_cast<size_t>(r), j = static_cast<size_t>(s);
          const int64_t phase = (c * down.count() + down.phase[i]) * along.count() + along.phase[j];
          *to++ = plane_at(phase) + down.place[i] * row + along.place[j];
        }
      }
    }
  }

  // Whether the input itself serves: without padding and phases, unless the last panel would read
  // beyond its end.
  bool in_input(int64_t image, const Bands::Band& band) const {
    const PatchGeometry& g = s_.geometry;
    // (In a gradient's phases the last windows may reach beyond the input.)
    const bool one_row =
        s_.out_height == 1 && s_.height == 1 && s_.out_width + bands_.along.reach - 1 <= s_.width;
    if (g.padding != IntPair{0, 0} || g.stride != IntPair{1, 1} ||
        (!one_row && bands_.row != s_.width) ||
        s_.out_height + bands_.down.reach - 1 != s_.height) {
      return false;
    }
    int64_t last = image * s_.in + s_.in - 1;  // plane
    int64_t planes = s_.batch * s_.groups * s_.in;
    if (s_.is_volume()) {
      const ConvSizes::Depths& d = s_.depths;
      const int64_t begin = s_.first_depth(image), end = begin + (d.kernel - 1) * d.dilation + 1;
      if (begin < 0 || end > d.size) return false;
      last = s_.first_plane(image) + (s_.in / d.kernel - 1) * d.size + end - 1;
      planes = planes / d.out / d.kernel * d.size;
    }
    const int64_t end = last * s_.plane() + (band.top + bands_.down.reach - 1) * s_.width +
                        band.left + g.dilation[1] * (g.kernel[1] - 1) +
                        bands_.panels(band) * bands_.panel;
    return end <= planes * s_.plane();
  }

  // The same of planes of words, whose halves are joined on the way: from channel `first` on.
  void join_phases(int64_t image, int64_t first, int64_t count, const Bands::Band& band,
                   float* to) const {
    const PatchGeometry& g = s_.geometry;
    const int64_t size = copied_rows_ * bands_.row;
    const uint16_t* const planes = bits_of(halves_.data) + image * halves_.channels * s_.plane();
    for (int64_t c = first; c < first + count; ++c) {
      const uint16_t* const even = planes + 2 * c * s_.plane();
      const uint16_t* const odd = 2 * c + 1 < halves_.channels ? even + s_.plane() : nullptr;
      for (const int64_t r : bands_.down.kinds) {
        for (const int64_t s : bands_.along.kinds) {
          word_conv_kernels()->pad(even, odd, s_.height, s_.width,
                                   band.top * g.stride[0] + r - g.padding[0],
                                   band.left * g.stride[1] + s - g.padding[1], g.stride,
                                   copied_rows_, bands_.row, reinterpret_cast<uint32_t*>(to));
          to += size;
        }
      }
    }
  }

  // Copies the phases of `count` planes that a band sees.
  void copy_phases(const int64_t* planes, int64_t count, const Bands::Band& band, T* to) const {
    const PatchGeometry& g = s_.geometry;
    // All planes are copied in one call, unless phases come in between.
    const int64_t at_once = bands_.phases() == 1 ? count : 1;
    const int64_t size = copied_rows_ * bands_.row;
    for (int64_t c = 0; c < count; c += at_once) {
      for (const int64_t r : bands_.down.kinds) {
        for (const int64_t s : bands_.along.kinds) {
          patch_kernels<T>().pad(x_, planes + c, at_once, s_.height, s_.width,
                                 band.top * g.stride[0] + r - g.padding[0],
                                 band.left * g.stride[1] + s - g.padding[1], g.stride, copied_rows_,
                                 bands_.row, to);
          to += size;
        }
      }
    }
  }

  void run_band(int64_t image, int64_t number, int64_t part) {
    const int64_t panel = part * weights_.panels() / parts_;
    const int64_t last_panel = (part + 1) * weights_.panels() / parts_;
    const Bands::Band band = bands_.band(number, s_);
    const int64_t pixel = band.top * s_.out_width + band.left;
    const int64_t pixels = band.rows * band.width;
    ConvBlock<T> block;
    block.panels = bands_.panels(band);
    block.b_panel = bands_.panel;
    block.c = out_.y;
    block.c_row = s_.output_step();
    block.c_at = s_.output_at(image) + pixel + weights_.channel_of(panel, s_) * block.c_row;
    (number + 1 == bands_.count ? last_ : whole_).use_for(block);
    const bool joined = x_ == nullptr, copied = joined || !in_input(image, band);
    const int64_t channels = weights_.longest_run() / s_.taps();
    const Scratch<int64_t> planes(channels);
    const Scratch<T> copy(copied ? channels * bands_.phases() * copied_rows_ * bands_.row +
                                       bands_.panel + bands_.row + kernels_.lanes
                                 : 0);
    for (int64_t run = 0; run < weights_.runs(); ++run) {
      const int64_t channel = weights_.first_channel(run, s_);
      weights_.use_for(block, s_, bias_, out_, image % s_.groups, run, panel, last_panel);
      const int64_t count = block.k / s_.taps();
      s_.find_planes(image, channel, channel + count, planes.get());
      // Over many panels a tile's own prefetches of the next one are enough, unless one row is read
      // where it lies: neighbouring taps ask for the same.
      const bool is_row = s_.out_height == 1 && s_.taps() > 1;
      if (!joined && (copied || block.panels < 16 || is_row)) {
        read_ahead(s_, x_, planes.get(), count, pixel, pixels);
      }
      if (copied) {
        if constexpr (std::is_same_v<T, float>) {
          if (joined) join_phases(image, channel, count, band, copy.get());
        }
        if (!joined) copy_phases(planes.get(), count, band, copy.get());
        block.b = copy.get();
        block.b_offsets = in_copy_.get();
      } else {
        const int64_t from = s_.is_volume()
                                 ? (s_.first_plane(image) + s_.first_depth(image)) * s_.plane()
                                 : planes[0];
        block.b = x_ + from + band.top * s_.width + band.left;
        block.b_offsets = in_x_.get() + (s_.is_volume() ? channel * s_.taps() : 0);
      }
      kernels_.conv_block(block);
    }
    if (out_.finish.is_none() || block.in_tile != nullptr) return;
    for (int64_t o = 0; o < block.m; ++o) {
      out_.finish(out_.y + block.c_at + o * block.c_row, pixels);
    }
  }

  const ConvSizes& s_;
  const Bands& bands_;
  const T* x_;  // or null, and
  HalfPlanes halves_;
  const T* bias_;
  const ConvOutput<T>& out_;
  const GemmKernels<T>& kernels_;
  PackedWeights<T> weights_;
  StoreTable whole_, last_;          // of the bands but the last, and of the last
  Scratch<int64_t> in_x_, in_copy_;  // where taps lie in the input, and in a padded copy of a band
  int64_t copied_rows_;
  int64_t parts_;  // of the channels
};

}  // namespace

template <class T, class Weight>
void forward_in_place(const ConvSizes& s, const Bands& bands, const GemmKernels<T>& kernels,
                      const ConvInput<T>& x, const Weight& weight, const T* bias,
                      const ConvOutput<T>& out) {
  InPlaceConvolution<T>(s, bands, kernels, x, weight, bias, out).run();
}

template void forward_in_place(const ConvSizes&, const Bands&, const GemmKernels<float>&,
                               const ConvInput<float>&, const ConvWeight<float>&, const float*,
                               const ConvOutput<float>&);
template void forward_in_place(const ConvSizes&, const Bands&, const GemmKernels<float>&,
                               const ConvInput<float>&, const WordWeight&, const float*,
                               const ConvOutput<float>&);
template void forward_in_place(const ConvSizes&, const Bands&, const GemmKernels<double>&,
                               const ConvInput<double>&, const ConvWeight<double>&, const double*,
                               const ConvOutput<double>&);

}  // namespace kiln::cpu
