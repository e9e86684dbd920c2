#include "kiln/io/pickle_input.h"

#include <algorithm>

#include "kiln/core/error.h"

namespace kiln::io::detail {

namespace {
constexpr uint64_t kBuffer = 64 * 1024;
constexpr size_t kLongestLine = 400;
}  // namespace

PickleInput::PickleInput(const InputFile& file, std::string_view bytes)
    : file_(&file), bytes_(bytes), end_(bytes.size()) {}

PickleInput::PickleInput(const InputFile& file, uint64_t begin, uint64_t end)
    : file_(&file), base_(begin), end_(end) {}

void PickleInput::fail(const std::string& what, const std::string& got,
                       const std::string& expected) const {
  throw_error<IoError>(file_->op(), ": '", file_->path(), "' is malformed: ", what, " (byte ",
                       position(), " of its pickle); got ", got, "; expected ", expected);
}

// Puts the next `bytes` bytes, at most kBuffer, at hand.
void PickleInput::need(uint64_t bytes) {
  if (bytes_.size() - at_ >= bytes) return;
  if (left() < bytes) fail("it is truncated", concat(left(), " bytes"), concat(bytes, " bytes"));
  base_ += at_;
  at_ = 0;
  buffer_.resize(static_cast<size_t>(std::min(kBuffer, end_ - base_)));
  file_->read_at(base_, buffer_.data(), buffer_.size());
  bytes_ = buffer_;
}

uint8_t PickleInput::byte() {
  need(1);
  return static_cast<uint8_t>(bytes_[at_++]);
}

uint64_t PickleInput::number(size_t bytes) {
  need(bytes);
  uint64_t value = 0;
  for (size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes_[at_ + i]);
  at_ += bytes;
  return value;
}

std::string PickleInput::take(uint64_t bytes) {
  if (bytes > left()) {
    fail("a text is longer than what is left", concat(bytes, " bytes"), concat("at most ", left()));
  }
  std::string out;
  out.reserve(static_cast<size_t>(bytes));
  while (out.size() < bytes) {
    need(1);
    const size_t n =
        static_cast<size_t>(std::min<uint64_t>(bytes - out.size(), bytes_.size() - at_));
    out.append(bytes_, at_, n);
    at_ += n;
  }
  return out;
}

std::string PickleInput::line() {
  std::string out;
  while (true) {
    const char c = static_cast<char>(byte());
    if (c == '\n') return out;
    if (out.size() == kLongestLine) fail("a name is too long", concat("more than ", kLongestLine));
    out += c;
  }
}

}  // namespace kiln::io::detail
