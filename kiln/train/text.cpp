#include "kiln/train/text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace kiln::train {

namespace {

template <class... Args>
std::string format(const char* pattern, Args... args) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, args...);
  return text;
}

}  // namespace

std::string percent(double fraction) {
  return std::isfinite(fraction) ? format("%.2f %%", fraction * 100) : "-";
}

std::string grouped(int64_t number) {
  std::string text = std::to_string(number);
  const int first = number < 0 ? 1 : 0;
  for (int at = static_cast<int>(text.size()) - 3; at > first; at -= 3) {
    text.insert(static_cast<size_t>(at), 1, ',');
  }
  return text;
}

std::string fixed(double value, int digits) {
  return std::isfinite(value) ? format("%.*f", digits, value) : "-";
}

std::string duration(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  if (seconds < 59.95) return format("%.1f s", seconds);
  const long long whole = std::llround(seconds);
  if (whole < 3600) return format("%lld:%02lld", whole / 60, whole % 60);
  return format("%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string text_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], text_width(row[i]));
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - text_width(row[i]), ' ');
      line += i == 0 ? row[i] + space : "  " + space + row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

size_t text_width(std::string_view utf8) {
  // Every byte but those that continue a character.
  return static_cast<size_t>(
      std::count_if(utf8.begin(), utf8.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string text_bar(double fraction, int width, bool unicode) {
  static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  if (!(fraction > 0) || width <= 0) return "";
  const double columns = std::min(fraction, 1.0) * width;
  std::string out;
  if (!unicode) return std::string(static_cast<size_t>(std::lround(columns)), '#');
  const auto eighths = std::lround(columns * 8);
  for (long i = 0; i < eighths / 8; ++i) out += "█";
  return out + kEighths[eighths % 8];
}

}  // namespace kiln::train
