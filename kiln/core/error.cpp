#include "kiln/core/error.h"

#include <cstdio>

namespace kiln::detail {

void append(std::string& out, double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", v);
  out += text;
}

}  // namespace kiln::detail
