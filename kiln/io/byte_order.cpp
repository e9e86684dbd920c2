#include "kiln/io/byte_order.h"

#include <algorithm>

namespace kiln::io {

void swap_byte_order(void* data, size_t count, size_t element) {
  if (element < 2) return;
  auto* at = static_cast<unsigned char*>(data);
  for (size_t i = 0; i < count; ++i, at += element) std::reverse(at, at + element);
}

}  // namespace kiln::io
