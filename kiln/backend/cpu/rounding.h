// Division that rounds up. Internal.
#pragma once

#include <cstdint>

namespace kiln::cpu {

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
// The first multiple of b that is at least a.
inline int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

}  // namespace kiln::cpu
