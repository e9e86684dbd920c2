// Messages in the wire format of Protocol Buffers, written by hand: what a few small ones need.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::io {

// Fields in the order in which they are added. See
// https://protobuf.dev/programming-guides/encoding.
class ProtobufWriter {
 public:
  ProtobufWriter& integer(int field, int64_t value);
  ProtobufWriter& number(int field, double value);
  ProtobufWriter& single(int field, float value);
  // A text, bytes, or another message.
  ProtobufWriter& bytes(int field, std::string_view value);
  ProtobufWriter& message(int field, const ProtobufWriter& value) {
    return bytes(field, value.text());
  }
  ProtobufWriter& packed(int field, const std::vector<double>& values);

  const std::string& text() const { return out_; }

 private:
  void tag(int field, int wire_type);
  void varint(uint64_t value);

  std::string out_;
};

}  // namespace kiln::io
