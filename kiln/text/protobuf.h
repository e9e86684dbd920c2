// The wire format of Protocol Buffers, as far as models of SentencePiece use it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kiln::text {

// One field of a message: a number, or bytes. Numbers of 4 or 8 bytes keep their bits.
struct Field {
  uint64_t number = 0;
  uint64_t value = 0;
  std::string_view bytes;
  bool is_bytes = false;
};

// Goes through the fields of a message. Throws IoError that begins with `subject` for one that is
// cut off or has a type that there is not.
class Fields {
 public:
  Fields(std::string_view message, const std::string& subject)
      : rest_(message), subject_(subject) {}
  // False at the end.
  bool next(Field& field);

 private:
  uint64_t varint();
  std::string_view take(uint64_t bytes);
  [[noreturn]] void broken(const char* what) const;

  std::string_view rest_;
  const std::string& subject_;
};

}  // namespace kiln::text
