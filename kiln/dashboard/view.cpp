#include "kiln/dashboard/view.h"

#include <algorithm>

#include "kiln/core/error.h"
#include "kiln/train/text.h"

namespace kiln::dashboard {

namespace {

constexpr int kTwoPlots = 140;  // columns from which both stand beside each other
constexpr const char* kOff = "\x1b[0m";
constexpr const char* kBold = "\x1b[1m";
constexpr const char* kDim = "\x1b[2m";
constexpr const char* kReversed = "\x1b[7m";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

// Columns without the escape sequences.
int columns_of(const std::string& line) {
  std::string plain;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {
      while (i < line.size() && line[i] != 'm') ++i;
    } else {
      plain += line[i];
    }
  }
  return static_cast<int>(train::text_width(plain));
}

std::string padded_to(std::string line, int width) {
  line = fit_line(line, width);
  return line + std::string(static_cast<size_t>(std::max(width - columns_of(line), 0)), ' ');
}

// Left and right, with what is between them.
std::string spread(const std::string& left, const std::string& right, int width) {
  const int room = width - columns_of(left) - columns_of(right);
  if (room < 1) return fit_line(left, width);
  return left + std::string(static_cast<size_t>(room), ' ') + right;
}

std::string rule(int width, const std::string& name, bool unicode) {
  std::string out = concat(kDim, unicode ? "\u2500\u2500 " : "-- ", name, " ");
  const int used = columns_of(out);
  for (int i = used; i < width; ++i) out += unicode ? "\u2500" : "-";
  return out + kOff;
}

// As many tabs as there is room for, with the one that is shown among them.
std::string tab_line(const DashboardView& view, int width) {
  const auto text = [&](size_t i) {
    const std::string number = i < 9 ? concat(i + 1, " ") : "";
    return concat(" ", number, view.tabs[i], " ");
  };
  const auto room_for = [&](size_t from) {
    int used = 0;
    for (size_t i = from; i <= view.tab; ++i) used += columns_of(text(i)) + 1;
    return used <= width;
  };
  size_t first = 0;
  while (first < view.tab && !room_for(first)) ++first;
  std::string out;
  for (size_t i = first; i < view.tabs.size(); ++i) {
    out += i == view.tab ? concat(kReversed, text(i), kOff, " ") : concat(text(i), " ");
  }
  return fit_line(out, width);
}

std::vector<std::string> plot_of(const DashboardView& view, bool recent, int width, int height) {
  const DashboardMetric& metric = view.metric;
  TextPlot plot;
  const std::string part = recent ? "recent" : "whole run";
  plot.title = concat(kBold, metric.name, kOff, ", ", part);
  plot.x_label = recent ? metric.recent_label : metric.whole_label;
  plot.series = recent ? metric.recent : metric.whole;
  plot.width = width;
  plot.height = std::max(height - 3, 4);  // a title, an axis, its numbers
  plot.unicode = view.unicode;
  plot.colour = true;
  plot.percent = metric.percent;
  std::vector<std::string> out = lines_of(to_text(plot));
  if (out.empty()) {
    out = {plot.title, "", concat(kDim, "  not measured yet: it is at the end of an epoch", kOff)};
  }
  out.resize(static_cast<size_t>(std::max(height, 0)));
  return out;
}

std::string keys(bool unicode) {
  return concat(kDim, "q stop and save  p pause  s save  ", unicode ? "\u2190 \u2192" : "arrows",
                " metric  v recent or whole", kOff);
}

}  // namespace

std::string fit_line(const std::string& line, int width) {
  std::string out;
  int used = 0;
  bool coloured = false;
  for (size_t i = 0; i < line.size();) {
    if (line[i] == '\x1b') {
      const size_t end = std::min(line.find('m', i), line.size() - 1);
      out += line.substr(i, end - i + 1);
      coloured = true;
      i = end + 1;
      continue;
    }
    size_t next = i + 1;
    while (next < line.size() && (static_cast<unsigned char>(line[next]) & 0xC0) == 0x80) ++next;
    if (++used > width) break;
    out += line.substr(i, next - i);
    i = next;
  }
  return coloured && used > width ? out + kOff : out;
}

std::vector<std::string> draw_dashboard(const DashboardView& view, int width, int height) {
  std::vector<std::string> out;
  const std::string bar = train::format_progress(view.progress, width, view.unicode);
  const std::string status = concat(view.urgent ? kReversed : "", view.urgent ? " " : "",
                                    view.status, view.urgent ? " " : "", kOff);
  out.push_back(spread(concat(kBold, view.title, kOff), status, width));
  out.push_back(bar);
  if (width >= 30 && height >= 8) {
    out.push_back(tab_line(view, width));
    const int log_rows = std::clamp(height / 4, 1, 14);
    const int plot_rows = height - static_cast<int>(out.size()) - log_rows - 3;
    if (width >= kTwoPlots) {
      const int half = width / 2 - 1;
      const auto left = plot_of(view, false, half, plot_rows);
      const auto right = plot_of(view, true, width - half - 2, plot_rows);
      for (size_t i = 0; i < left.size(); ++i) {
        out.push_back(padded_to(left[i], half) + "  " + right[i]);
      }
    } else {
      for (std::string& line : plot_of(view, view.recent, width, plot_rows)) {
        out.push_back(std::move(line));
      }
    }
    out.push_back(view.resources);
    out.push_back(rule(width, "log", view.unicode));
    const size_t skipped =
        view.log.size() - std::min(view.log.size(), static_cast<size_t>(log_rows));
    for (size_t i = 0; i < static_cast<size_t>(log_rows); ++i) {
      out.push_back(skipped + i < view.log.size() ? view.log[skipped + i] : "");
    }
    out.push_back(keys(view.unicode));
  }
  out.resize(static_cast<size_t>(std::max(height, 1)));
  for (std::string& line : out) line = fit_line(line, width);
  return out;
}

}  // namespace kiln::dashboard
