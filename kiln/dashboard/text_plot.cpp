#include "kiln/dashboard/text_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kiln/core/error.h"
#include "kiln/train/chart.h"
#include "kiln/train/text.h"

namespace kiln::dashboard {

namespace {

constexpr std::array<const char*, 4> kColours{"\x1b[34m", "\x1b[33m", "\x1b[32m", "\x1b[35m"};
constexpr const char* kPlain = "\x1b[0m";
constexpr std::array<const char*, 4> kMarks{"*", "o", "+", "x"};

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void add(double v) {
    low = std::min(low, v);
    high = std::max(high, v);
  }
  // A line alone needs a height.
  void widen() {
    if (low < high) return;
    const double margin = low == 0 ? 1 : std::abs(low) * 0.1;
    low -= margin;
    high += margin;
  }
  double share(double v) const { return (v - low) / (high - low); }
};

// Cells of 2 x 4 dots; the last series that set a dot gives a cell its colour.
class Dots {
 public:
  Dots(int columns, int rows, int wide, int high)
      : columns_(columns),
        rows_(rows),
        wide_(wide),
        high_(high),
        bits_(static_cast<size_t>(columns * rows)),
        owner_(bits_.size(), -1) {}
  int width() const { return columns_ * wide_; }
  int height() const { return rows_ * high_; }
  void set(int x, int y, int series) {
    static constexpr unsigned kBits[4][2] = {{1, 8}, {2, 16}, {4, 32}, {64, 128}};
    if (x < 0 || y < 0 || x >= width() || y >= height()) return;
    const auto at = static_cast<size_t>(y / high_ * columns_ + x / wide_);
    bits_[at] |= kBits[y % high_][x % wide_];
    owner_[at] = series;
  }
  unsigned bits(int column, int row) const { return bits_[index(column, row)]; }
  int owner(int column, int row) const { return owner_[index(column, row)]; }

 private:
  size_t index(int column, int row) const { return static_cast<size_t>(row * columns_ + column); }
  int columns_, rows_, wide_, high_;
  std::vector<unsigned> bits_;
  std::vector<int> owner_;
};

std::string braille(unsigned bits) {
  const unsigned code = 0x2800 + bits;
  return {static_cast<char>(0xE0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 63)),
          static_cast<char>(0x80 | (code & 63))};
}

void draw(Dots& dots, const TextSeries& s, const Range& x, const Range& y, int series) {
  int last_x = 0, last_y = 0;
  bool pen = false;
  for (const auto& [px, py] : s.points) {
    if (!std::isfinite(py)) {
      pen = false;
      continue;
    }
    const int at_x = static_cast<int>(std::lround(x.share(px) * (dots.width() - 1)));
    const int at_y = static_cast<int>(std::lround((1 - y.share(py)) * (dots.height() - 1)));
    const int steps = pen ? std::max({std::abs(at_x - last_x), std::abs(at_y - last_y), 1}) : 1;
    for (int k = pen ? 0 : steps; k <= steps; ++k) {
      const double part = static_cast<double>(k) / steps;
      dots.set(static_cast<int>(std::lround(pen ? last_x + part * (at_x - last_x) : at_x)),
               static_cast<int>(std::lround(pen ? last_y + part * (at_y - last_y) : at_y)), series);
    }
    last_x = at_x;
    last_y = at_y;
    pen = true;
  }
}

std::string tick(double value, bool percent) {
  if (percent) return train::format_number("%.1f %%", value * 100);
  const double size = std::abs(value);
  return train::format_number(size != 0 && (size < 1e-3 || size >= 1e5) ? "%.2e" : "%.4g", value);
}

std::string padded(const std::string& text, size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

}  // namespace

std::string to_text(const TextPlot& plot) {
  Range x, y;
  for (const TextSeries& s : plot.series) {
    for (const auto& [px, py] : s.points) {
      if (!std::isfinite(py)) continue;
      x.add(px);
      y.add(py);
    }
  }
  if (x.low > x.high) return "";
  const Range labels = x;
  x.widen();
  y.widen();
  const int height = std::max(plot.height, 4);
  // A number stands at the top, the bottom and each fourth row between.
  std::vector<std::string> ticks(static_cast<size_t>(height));
  size_t margin = 0;
  for (int row = 0; row < height; ++row) {
    if (row % 4 != 0 && row != height - 1) continue;
    if (row != height - 1 && height - 1 - row < 2) continue;
    const double value = y.high - (y.high - y.low) * row / (height - 1);
    ticks[static_cast<size_t>(row)] = tick(value, plot.percent);
    margin = std::max(margin, ticks[static_cast<size_t>(row)].size());
  }
  const int columns = std::max(plot.width - static_cast<int>(margin) - 2, 10);
  const bool braille_dots = plot.unicode && (plot.colour || plot.series.size() == 1);
  Dots dots(columns, height, braille_dots ? 2 : 1, braille_dots ? 4 : 1);
  for (size_t i = 0; i < plot.series.size(); ++i) {
    draw(dots, plot.series[i], x, y, static_cast<int>(i));
  }
  std::string out = plot.title + "   ";
  for (size_t i = 0; i < plot.series.size() && plot.series.size() > 1; ++i) {
    const std::string mark = braille_dots ? "\u2500\u2500" : kMarks[i % kMarks.size()];
    out += concat(plot.colour ? kColours[i % kColours.size()] : "", mark, plot.colour ? kPlain : "",
                  " ", plot.series[i].name, "  ");
  }
  out.erase(out.find_last_not_of(' ') + 1);
  out += "\n";
  for (int row = 0; row < height; ++row) {
    const std::string& label = ticks[static_cast<size_t>(row)];
    out += padded(label, margin) +
           (plot.unicode ? (label.empty() ? " \u2502" : " \u2524") : (label.empty() ? " |" : " +"));
    std::string line;
    size_t used = 0;
    for (int column = 0; column < columns; ++column) {
      const unsigned bits = dots.bits(column, row);
      if (bits == 0) {
        line += ' ';
        continue;
      }
      const auto owner = static_cast<size_t>(dots.owner(column, row));
      if (plot.colour) line += kColours[owner % kColours.size()];
      line += braille_dots ? braille(bits) : kMarks[owner % kMarks.size()];
      if (plot.colour) line += kPlain;
      used = line.size();
    }
    out += line.substr(0, used) + "\n";
  }
  std::string axis;
  for (int column = 0; column < columns; ++column) axis += plot.unicode ? "\u2500" : "-";
  out += std::string(margin, ' ') + (plot.unicode ? " \u2514" : " +") + axis + "\n";
  const std::string first = train::format_number("%.10g", labels.low);
  const std::string last = train::format_number("%.10g", labels.high);
  const auto room = static_cast<size_t>(columns);
  std::string foot = first;
  const std::string middle = plot.x_label;
  if (room > first.size() + last.size() + middle.size() + 4 && labels.low < labels.high) {
    const size_t at = (room - middle.size()) / 2;
    foot += std::string(at > foot.size() ? at - foot.size() : 1, ' ') + middle;
    foot += std::string(room - foot.size() - last.size(), ' ') + last;
  } else {
    foot += " " + middle;
  }
  return out + std::string(margin + 2, ' ') + foot + "\n";
}

}  // namespace kiln::dashboard
