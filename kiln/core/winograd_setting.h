// Whether convolutions on the CPU may use Winograd's algorithm.
#pragma once

namespace kiln {

// Convolutions of 3 x 3 windows in f32 (and in the 16-bit floats, which are computed in f32) with
// stride 1 and many channels take a quarter of the products, at about twice the error of a direct
// sum. What is lost is measured by the largest input nearby: where inputs next to each other differ
// by many orders of magnitude, small outputs beside a huge one are less exact. Off, every output is
// the direct sum of its window. On at the start unless the environment has KILN_WINOGRAD=0.
bool winograd_enabled();
void set_winograd_enabled(bool enabled);

}  // namespace kiln
