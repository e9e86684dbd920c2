#include "kiln/io/protobuf_writer.h"

#include <bit>

namespace kiln::io {

namespace {

// Least significant byte first.
template <class T>
std::string little_endian(T bits) {
  std::string out(sizeof(T), '\0');
  for (size_t i = 0; i < sizeof(T); ++i) out[i] = static_cast<char>(bits >> (8 * i) & 255u);
  return out;
}

}  // namespace

void ProtobufWriter::varint(uint64_t value) {
  for (; value >= 128; value >>= 7) out_ += static_cast<char>((value & 127u) | 128u);
  out_ += static_cast<char>(value);
}

void ProtobufWriter::tag(int field, int wire_type) {
  varint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire_type));
}

ProtobufWriter& ProtobufWriter::integer(int field, int64_t value) {
  tag(field, 0);
  varint(static_cast<uint64_t>(value));
  return *this;
}

ProtobufWriter& ProtobufWriter::number(int field, double value) {
  tag(field, 1);
  out_ += little_endian(std::bit_cast<uint64_t>(value));
  return *this;
}

ProtobufWriter& ProtobufWriter::single(int field, float value) {
  tag(field, 5);
  out_ += little_endian(std::bit_cast<uint32_t>(value));
  return *this;
}

ProtobufWriter& ProtobufWriter::bytes(int field, std::string_view value) {
  tag(field, 2);
  varint(value.size());
  out_ += value;
  return *this;
}

ProtobufWriter& ProtobufWriter::packed(int field, const std::vector<double>& values) {
  tag(field, 2);
  varint(values.size() * sizeof(double));
  for (const double value : values) out_ += little_endian(std::bit_cast<uint64_t>(value));
  return *this;
}

}  // namespace kiln::io
