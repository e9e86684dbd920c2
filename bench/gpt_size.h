// The sizes of the small GPT that are not always the same.
#pragma once

#include <cstdint>

namespace kiln::bench {

struct GptSize {
  int64_t layers = 4;
  int64_t batch = 8;
  int64_t length = 128;
};

}  // namespace kiln::bench
