#include "kiln/core/choice.h"

#include "kiln/core/error.h"
#include "kiln/core/utf8.h"

namespace kiln::detail {

uint8_t choice_of(const char* type, std::string_view words, std::string_view word) {
  std::string_view rest = words;
  for (uint8_t i = 0; !rest.empty(); ++i) {
    const size_t end = rest.find(", ");
    if (rest.substr(0, end) == word) return i;
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 2);
  }
  throw_error<ValueError>(type, ": unknown word; got '", printable(std::string(word)),
                          "'; expected one of ", words);
}

}  // namespace kiln::detail
