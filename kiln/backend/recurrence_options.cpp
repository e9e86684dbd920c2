#include "kiln/backend/recurrence_options.h"

#include <algorithm>
#include <numeric>

namespace kiln {

int64_t RecurrenceOptions::rows() const {
  return std::accumulate(batch_sizes.begin(), batch_sizes.end(), int64_t{0});
}

std::vector<RecurrenceStep> RecurrenceOptions::steps() const {
  std::vector<RecurrenceStep> out;
  int64_t begin = 0;
  for (const int64_t n : batch_sizes) {
    out.push_back({begin, n});
    begin += n;
  }
  if (reverse) std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace kiln
