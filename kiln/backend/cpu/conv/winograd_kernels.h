// The transforms of Winograd's convolution of 3 x 3 windows, F(4 x 4, 3 x 3). Internal to the Cpu
// backend.
#pragma once

#include <cstdint>

namespace kiln::cpu {

// A tile is 4 x 4 outputs, which see 6 x 6 inputs; its transform has 36 positions (Lavin and Gray,
// "Fast Algorithms for Convolutional Neural Networks", 2016). `tiles` of an array count its tiles
// rounded up to whole vectors; what the tiles beyond the real ones hold is undefined.
struct WinogradKernels {
  int64_t lanes;

  // The windows of `rows` output channels: taps[(p * 9 + t) * rows + row] is tap t of input channel
  // p < depth. Position i goes to to[i * step + p * rows + row]. Reads and writes whole vectors.
  void (*weights)(const float* taps, int64_t depth, int64_t rows, float* to, int64_t step);

  // The first half of the inputs' transform, of a row of tiles: from[r * row + c] for r < 6 is the
  // input of output (0, 0) on; stages[i * stage_step + c] and, from column 4 on, stages[(6 + i) *
  // stage_step + c] receive 4 * tiles columns. Reads and writes whole vectors.
  void (*input_rows)(const float* from, int64_t row, int64_t tiles, float* stages,
                     int64_t stage_step);
  // The second half, of `tiles` tiles side by side: position i of tile t goes to to[i * step + t].
  void (*input_columns)(const float* stages, int64_t stage_step, int64_t tiles, float* to,
                        int64_t step);

  // Products back to outputs: from[i * step + t] is position i of tile t. Output row r of all tiles
  // goes to to[r * row], four columns for each tile, plus `bias`. Returns whether all of them are
  // finite.
  bool (*output)(const float* from, int64_t step, int64_t tiles, float bias, float* to,
                 int64_t row);
};

const WinogradKernels& winograd_kernels();

}  // namespace kiln::cpu
