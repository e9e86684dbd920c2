// Bounds within which kernels hold their results, as relu and relu6 do.
#pragma once

namespace kiln::cpu {

// y < low becomes low, y > high becomes high; NaN and -0 stay.
template <class T>
struct Clamp {
  T low, high;
};

}  // namespace kiln::cpu
