#include "cli/numbers.h"

#include <charconv>
#include <cmath>

#include "kiln/core/error.h"

namespace kiln::cli {

namespace {

// Whether all of the text is a number; `out` holds it then.
template <class T>
std::errc parse(const std::string& text, T& out) {
  const char* first = text.c_str();
  const char* last = first + text.size();
  if (first != last && *first == '+') ++first;
  const auto [end, error] = std::from_chars(first, last, out);
  if (error == std::errc::result_out_of_range) return error;
  return error != std::errc{} || end != last ? std::errc::invalid_argument : std::errc{};
}

}  // namespace

CLI::Validator whole_number(int64_t low, int64_t high) {
  return CLI::Validator(
      [low, high](std::string& text) -> std::string {
        int64_t n = 0;
        const std::errc error = parse(text, n);
        if (error == std::errc::invalid_argument) return "'" + text + "' is not a whole number";
        if (error != std::errc{} || n < low || n > high) {
          return concat("expected a whole number from ", low, " to ", high, "; got ", text);
        }
        return "";
      },
      "");
}

CLI::Validator positive_number() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        double x = 0.0;
        const std::errc error = parse(text, x);
        if (error == std::errc::invalid_argument) return "'" + text + "' is not a number";
        if (error != std::errc{} || !std::isfinite(x) || x <= 0.0) {
          return "expected a number above 0; got " + text;
        }
        return "";
      },
      "");
}

}  // namespace kiln::cli
