// Convolution by packed patches: Note [Patches].
#include "kiln/backend/cpu/conv/conv_direct.h"
#include "kiln/backend/cpu/conv/packed_weights.h"

namespace kiln::cpu {
namespace {

// One block of the pixels of all images, of one group.
template <class T>
void convolve_packed(const ConvSizes& s, const GemmKernels<T>& kernels,
                     const PackedWeights<T>& weights, const T* x, const T* bias,
                     const ConvOutput<T>& out, int64_t group, int64_t pixel, int64_t count,
                     T* patches, StoreTable& table) {
  // Calls f(column, image, first pixel in it, pixels) for the parts of columns [begin, end) that
  // lie in one image.
  const auto for_each_part = [&](int64_t begin, int64_t end, auto&& f) {
    while (begin < end) {
      const int64_t image = (pixel + begin) / s.pixels();
      const int64_t at = (pixel + begin) % s.pixels();
      const int64_t n = std::min(end - begin, s.pixels() - at);
      f(begin, image, at, n);
      begin += n;
    }
  };
  table.clear();
  for (int64_t v = 0; v < ceil_div(count, kernels.columns) * kernels.columns; v += kernels.lanes) {
    for_each_part(v, std::min<int64_t>(v + kernels.lanes, count),
                  [&](int64_t column, int64_t image, int64_t at, int64_t n) {
                    table.add(s.output_at(image * s.groups + group) + at - (column - v), column - v,
                              column - v + n);
                  });
    table.end_vector();
  }
  ConvBlock<T> block;
  block.panels = ceil_div(count, kernels.columns);
  block.b = patches;
  block.c = out.y;
  block.c_row = s.output_step();
  table.use_for(block);
  for (int64_t run = 0; run < weights.runs(); ++run) {
    weights.use_for(block, s, bias, out, group, run, 0, weights.panels());
    block.b_panel = block.k * kernels.columns;
    const int64_t channel = weights.first_channel(run, s), channels = block.k / s.taps();
    const Scratch<int64_t> found(channels);
    auto planes_of = [&, known = int64_t{-1}](int64_t image) mutable {
      if (image != known) {
        s.find_planes(image * s.groups + group, channel, channel + channels, found.get());
        known = image;
      }
      return found.get();
    };
    for_each_part(0, count, [&](int64_t, int64_t image, int64_t at, int64_t n) {
      read_ahead(s, x, planes_of(image), channels, at, n);
    });
    for (int64_t j = 0; j < count; j += kernels.columns) {
      for_each_part(j, std::min<int64_t>(j + kernels.columns, count),
                    [&](int64_t column, int64_t image, int64_t at, int64_t n) {
                      patch_kernels<T>().pack(s.geometry, x, planes_of(image), channels, at, n,
                                              patches + j * block.k + column - j, kernels.columns,
                                              kernels.columns - (column - j));
                    });
    }
    kernels.conv_block(block);
  }
  if (out.finish.is_none() || block.in_tile != nullptr) return;
  for_each_part(0, count, [&](int64_t, int64_t image, int64_t at, int64_t n) {
    T* const plane = out.y + s.output_at(image * s.groups + group) + at;
    for (int64_t o = 0; o < s.out; ++o) out.finish(plane + o * s.output_step(), n);
  });
}

}  // namespace

template <class T, class Weight>
void forward_packed(const ConvSizes& s, const GemmKernels<T>& kernels, const T* x,
                    const Weight& weight, const T* bias, const ConvOutput<T>& out) {
  const PackedWeights<T> weights(s, kernels, weight);
  const int64_t pixels = s.batch * s.pixels();
  const int64_t panels = ceil_div(pixels, kernels.columns);
  const int64_t most =
      std::max<int64_t>(kPatchElements / weights.longest_run() / kernels.columns, 1);
  const int64_t blocks =
      std::min(panels, std::max(ceil_div(panels, most), ceil_div(wanted_pieces(), s.groups)));
  // Of blocks small enough, those that threads share most evenly.
  const auto rounds = [&](int64_t of_block) {
    return ceil_div(s.groups * ceil_div(panels, of_block), int64_t{num_threads()}) * of_block;
  };
  int64_t block_panels = ceil_div(panels, blocks);
  for (int64_t n = block_panels - 1; n > 0; --n) {
    if (rounds(n) < rounds(block_panels)) block_panels = n;
  }
  const int64_t block_pixels = block_panels * kernels.columns;
  const int64_t pieces = ceil_div(pixels, block_pixels);
  const int64_t work = std::max<int64_t>(s.out * s.depth() * block_pixels, 1);
  parallel_for(s.groups * pieces, std::max<int64_t>(kConvPieceWork / work, 1),
               [&](int64_t begin, int64_t end) {
                 const Scratch<T> patches(block_pixels * weights.longest_run());
                 StoreTable table(2 * block_panels, block_pixels);
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t pixel = i % pieces * block_pixels;
                   convolve_packed(s, kernels, weights, x, bias, out, i / pieces, pixel,
                                   std::min(block_pixels, pixels - pixel), patches.get(), table);
                 }
               });
}

template void forward_packed(const ConvSizes&, const GemmKernels<float>&, const float*,
                             const ConvWeight<float>&, const float*, const ConvOutput<float>&);
template void forward_packed(const ConvSizes&, const GemmKernels<float>&, const float*,
                             const WordWeight&, const float*, const ConvOutput<float>&);
template void forward_packed(const ConvSizes&, const GemmKernels<double>&, const double*,
                             const ConvWeight<double>&, const double*, const ConvOutput<double>&);

}  // namespace kiln::cpu
