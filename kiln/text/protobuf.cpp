#include "kiln/text/protobuf.h"

#include <cstring>

#include "kiln/core/error.h"

namespace kiln::text {

void Fields::broken(const char* what) const { throw_error<IoError>(subject_, ": ", what); }

uint64_t Fields::varint() {
  uint64_t out = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (rest_.empty()) broken("ends within a number");
    const auto byte = static_cast<unsigned char>(rest_[0]);
    rest_.remove_prefix(1);
    out |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return out;
  }
  broken("holds a number of more than ten bytes");
}

std::string_view Fields::take(uint64_t bytes) {
  if (bytes > rest_.size()) broken("ends within a field");
  const std::string_view out = rest_.substr(0, bytes);
  rest_.remove_prefix(bytes);
  return out;
}

bool Fields::next(Field& field) {
  if (rest_.empty()) return false;
  const uint64_t tag = varint();
  field = {};
  field.number = tag >> 3;
  switch (tag & 7) {
    case 0:
      field.value = varint();
      return true;
    case 1:
      std::memcpy(&field.value, take(8).data(), 8);
      return true;
    case 2:
      field.is_bytes = true;
      field.bytes = take(varint());
      return true;
    case 5:
      std::memcpy(&field.value, take(4).data(), 4);
      return true;
    default:
      broken("is no Protocol Buffers message: a field has an unknown type");
  }
}

}  // namespace kiln::text
