// Activations that kernels apply to their results before they store them.
#pragma once

namespace kiln::cpu {

// y within bounds, as relu and relu6 have it: y < low becomes low, y > high becomes high; NaN and
// -0 stay. Or hardswish: y times (y + 3 within [0, 6]) / 6.
template <class T>
struct TileActivation {
  T low, high;
  bool is_hardswish = false;
};

}  // namespace kiln::cpu
