// GGUF files, byte by byte, for tests of the reader.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kiln::test {

class GgufBytes {
 public:
  template <class T>
  static std::string raw(T value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof value);
  }
  static std::string text(const std::string& value) { return raw(uint64_t(value.size())) + value; }

  // A value of the header: its type and its bytes.
  GgufBytes& value(const std::string& key, uint32_t type, const std::string& bytes) {
    values_ += text(key) + raw(type) + bytes;
    ++value_count_;
    return *this;
  }
  // dims as the file has them, the last dim first; the bytes follow the earlier tensors'.
  GgufBytes& tensor(const std::string& name, const std::vector<uint64_t>& dims, uint32_t type,
                    const std::string& bytes) {
    entries_ += text(name) + raw(uint32_t(dims.size()));
    for (const uint64_t size : dims) entries_ += raw(size);
    entries_ += raw(type) + raw(uint64_t(data_.size()));
    data_ += bytes;
    data_.resize((data_.size() + 31) / 32 * 32, '\0');
    ++tensor_count_;
    return *this;
  }
  std::string bytes(uint32_t version = 3) const {
    std::string out = "GGUF" + raw(version) + raw(tensor_count_) + raw(value_count_);
    out += values_ + entries_;
    out.resize((out.size() + 31) / 32 * 32, '\0');
    return out + data_;
  }

 private:
  std::string values_, entries_, data_;
  uint64_t value_count_ = 0, tensor_count_ = 0;
};

}  // namespace kiln::test
