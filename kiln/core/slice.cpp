#include "kiln/core/slice.h"

#include <algorithm>

#include "kiln/core/error.h"

namespace kiln {

Range resolve_slice(const char* op, const Slice& slice, int64_t size) {
  if (slice.step < 1) {
    throw_error<ValueError>(op, ": step must be positive; got ", slice.step,
                            "; try flip() to reverse a dim");
  }
  const auto clamp = [size](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
  };
  Range range;
  range.start = clamp(slice.start.value_or(0));
  range.end = std::max(clamp(slice.end.value_or(size)), range.start);
  range.step = slice.step;
  return range;
}

}  // namespace kiln
