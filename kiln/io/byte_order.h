// Values of the other byte order.
#pragma once

#include <cstddef>

namespace kiln::io {

// Reverses the bytes of each of `count` elements of `element` bytes (1, 2, 4, 8 or 16).
void swap_byte_order(void* data, size_t count, size_t element);

}  // namespace kiln::io
