#include "kiln/nn/param_id.h"

#include <atomic>
#include <random>

#include "kiln/core/error.h"
#include "kiln/core/random.h"

namespace kiln::nn {
namespace {

constexpr std::string_view kDigits = "0123456789abcdefghijklmnopqrstuv";
constexpr int kLength = 13;  // ceil(64 / 5)

uint64_t process_key() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 32) | device();
}

uint64_t fresh_value() {
  static const uint64_t key = process_key();
  static std::atomic<uint64_t> next{0};
  const auto words = philox(key, next.fetch_add(1, std::memory_order_relaxed));
  return (static_cast<uint64_t>(words[0]) << 32) | words[1];
}

}  // namespace

ParamId::ParamId() : value_(fresh_value()) {}

// Base 32 reads the bytes as one string of bits, each byte from its highest bit, padded by one zero
// bit to 65.
std::string to_string(ParamId id) {
  std::string out;
  int bits = 0;
  uint32_t pending = 0;
  for (int byte = 0; byte < 8; ++byte) {
    pending = (pending << 8) | static_cast<uint32_t>((id.value() >> (8 * byte)) & 0xff);
    for (bits += 8; bits >= 5; bits -= 5) out += kDigits[(pending >> (bits - 5)) & 31];
  }
  out += kDigits[(pending << (5 - bits)) & 31];
  return out;
}

ParamId ParamId::parse(std::string_view text) {
  uint64_t value = 0;
  int bits = 0;
  int byte = 0;
  uint32_t pending = 0;
  bool good = text.size() == kLength;
  for (size_t i = 0; good && i < text.size(); ++i) {
    const size_t digit = kDigits.find(text[i]);
    good = digit != std::string_view::npos;
    pending = (pending << 5) | static_cast<uint32_t>(digit & 31);
    bits += 5;
    if (bits >= 8) {
      bits -= 8;
      value |= static_cast<uint64_t>((pending >> bits) & 0xff) << (8 * byte++);
    }
  }
  // What is left over of the last digit must be the padding.
  if (!good || (pending & ((1u << bits) - 1)) != 0) {
    throw_error<ValueError>("ParamId: not an id; got '", text, "'; expected ", kLength,
                            " digits of 0-9, a-v");
  }
  return ParamId(value);
}

}  // namespace kiln::nn
