// Whether text is UTF-8.
#pragma once

#include <string_view>

namespace kiln::io {

bool is_utf8(std::string_view text);

}  // namespace kiln::io
