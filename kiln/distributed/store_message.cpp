#include "kiln/distributed/store_message.h"

#include <cstring>

#include "kiln/distributed/error.h"

namespace kiln::distributed {

namespace {

// Little-endian, 4 bytes: the length of what follows.
constexpr size_t kLength = 4;

void put_length(std::string& out, size_t at, size_t value) {
  for (size_t i = 0; i < kLength; ++i) out[at + i] = static_cast<char>(value >> (8 * i));
}

size_t length_at(std::string_view bytes, size_t at) {
  size_t value = 0;
  for (size_t i = 0; i < kLength; ++i) {
    value |= static_cast<size_t>(static_cast<uint8_t>(bytes[at + i])) << (8 * i);
  }
  return value;
}

[[noreturn]] void throw_malformed() {
  throw_error<DistNetworkError>("TCPStore: a malformed message came");
}

}  // namespace

std::string to_bytes(const StoreMessage& message) {
  std::string out(kLength, '\0');
  out += static_cast<char>(message.kind);
  for (const std::string& text : message.texts) {
    if (text.size() > kLargestStoreMessage || out.size() > kLargestStoreMessage) break;
    out.append(kLength, '\0');
    put_length(out, out.size() - kLength, text.size());
    out += text;
  }
  const size_t size = out.size() - kLength;
  if (size > kLargestStoreMessage ||
      (!message.texts.empty() && message.texts.back().size() > kLargestStoreMessage)) {
    throw_error<ValueError>("TCPStore: keys and values of a call must have at most ",
                            kLargestStoreMessage, " bytes");
  }
  put_length(out, 0, size);
  return out;
}

std::optional<StoreMessage> take_message(std::string& bytes) {
  if (bytes.size() < kLength) return std::nullopt;
  const size_t size = length_at(bytes, 0);
  if (size == 0 || size > kLargestStoreMessage) throw_malformed();
  if (bytes.size() - kLength < size) return std::nullopt;
  const std::string_view body = std::string_view(bytes).substr(kLength, size);
  StoreMessage message{static_cast<uint8_t>(body[0])};
  for (size_t at = 1; at < size;) {
    if (size - at < kLength) throw_malformed();
    const size_t length = length_at(body, at);
    at += kLength;
    if (length > size - at) throw_malformed();
    message.texts.emplace_back(body.substr(at, length));
    at += length;
  }
  bytes.erase(0, kLength + size);
  return message;
}

}  // namespace kiln::distributed
