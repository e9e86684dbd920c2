// MemoryFormat: in which order the elements of a tensor lie in memory.
#pragma once

#include <cstdint>

namespace kiln {

enum class MemoryFormat : uint8_t {
  preserve_format,    // as it is
  contiguous_format,  // row-major: N C H W
  channels_last,      // N H W C, for tensors with 4 dims; the dims keep their order N C H W
};

}  // namespace kiln
