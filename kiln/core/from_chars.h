// std::from_chars, also for floating-point numbers where the standard library has none. Internal.
#pragma once

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>
#include <system_error>

namespace kiln::detail {

using std::from_chars;

// What std::from_chars leaves to its caller, strtod takes: space and a plus at the front, 0x.
inline std::from_chars_result from_chars_by_strtod(const char* first, const char* last,
                                                   double& out) {
  const std::from_chars_result none{first, std::errc::invalid_argument};
  const std::string text(first, last);
  const size_t start = text.starts_with('-') ? 1 : 0;
  if (text.find_first_of("0123456789.iInN", start) != start) return none;
  if (text.size() > start + 1 && text[start] == '0' && (text[start + 1] | 0x20) == 'x') {
    out = start == 1 ? -0.0 : 0.0;
    return {first + start + 1, std::errc()};
  }
  char* end = nullptr;
  errno = 0;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str()) return none;
  const char* const stop = first + (end - text.c_str());
  if (errno == ERANGE && (std::isinf(value) || value == 0)) {
    return {stop, std::errc::result_out_of_range};
  }
  out = value;
  return {stop, std::errc()};
}

#ifndef __cpp_lib_to_chars  // libc++
inline std::from_chars_result from_chars(const char* first, const char* last, double& out) {
  return from_chars_by_strtod(first, last, out);
}
#endif

}  // namespace kiln::detail
