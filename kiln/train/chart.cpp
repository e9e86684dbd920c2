#include "kiln/train/chart.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "kiln/core/error.h"

namespace kiln::train {

namespace {

// What an axis shows: from `low` to `high`, with ticks.
struct Axis {
  double low = 0;
  double high = 1;
  double step = 1;  // between ticks, on a linear axis
  std::vector<double> ticks;
  bool log = false;
  double pixel_low = 0;
  double pixel_high = 1;

  double at(double v) const {
    v = std::clamp(v, low, high);
    const double share = log ? std::log(v / low) / std::log(high / low) : (v - low) / (high - low);
    return pixel_low + share * (pixel_high - pixel_low);
  }
};

// The least of 1, 2, 5 times a power of ten that makes at most `most` steps of `span`.
double nice_step(double span, int most) {
  const double raw = span / most;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw * 0.999999) return factor * power;
  }
  return 10 * power;
}

Axis linear_axis(double low, double high, double step) {
  Axis axis{low, high, step, {}, false, 0, 1};
  const double first = std::ceil(low / step - 1e-9);
  for (int i = 0; i < 100; ++i) {
    const double v = (first + i) * step;
    if (v > high + step * 1e-6) break;
    axis.ticks.push_back(v);
  }
  return axis;
}

Axis log_axis(double low, double high) {
  if (low == high) high = low * 2;
  const double decades = std::log10(high / low);
  Axis axis{low, high, 1, {}, true, 0, 1};
  for (double power = std::floor(std::log10(low)); power <= std::log10(high); ++power) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double v = factor * std::pow(10.0, power);
      const bool shown = factor == 1.0 || decades < 2.5;
      if (shown && v >= low * 0.999999 && v <= high * 1.000001) axis.ticks.push_back(v);
    }
  }
  return axis;
}

Axis x_axis(const Chart& chart, double low, double high) {
  if (low == high) {
    low -= 1;
    high += 1;
  }
  const double step = nice_step(high - low, chart.width > 700 ? 12 : 8);
  return linear_axis(low, high, chart.integer_x ? std::max(step, 1.0) : step);
}

Axis y_axis(const Chart& chart, double low, double high) {
  if (chart.log_y) return log_axis(low, high);
  if (low == high) {
    const double margin = low == 0 ? 0.5 : std::abs(low) * 0.1;
    low -= margin;
    high += margin;
  }
  // Zero belongs on the axis where it is near enough not to squeeze the curve.
  if (!chart.percent && low > 0 && low < 0.4 * high) low = 0;
  const double step = nice_step(high - low, 6);
  low = std::floor(low / step + 1e-9) * step;
  high = std::ceil(high / step - 1e-9) * step;
  if (chart.percent) {
    low = std::max(low, 0.0);
    high = std::min(high, 1.0);
  }
  return linear_axis(low, high, step);
}

// Whether the chart can show this y value. (A span of more than 1e308 would overflow.)
bool drawable(const Chart& chart, double y) {
  return std::abs(y) < 1e300 && (!chart.log_y || y > 0);
}

// A tick's label, with the decimals that its step needs.
std::string tick_label(const Axis& axis, double value, bool percent) {
  if (axis.log) return format_number("%.2g", value);
  double step = axis.step;
  if (percent) {
    value *= 100;
    step *= 100;
  }
  if (std::abs(value) < step * 1e-6) value = 0;
  const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 9);
  char text[64];
  if (std::abs(value) >= 1e7 || (decimals > 6 && value != 0)) {
    std::snprintf(text, sizeof text, "%.2g", value);
  } else {
    std::snprintf(text, sizeof text, "%.*f", decimals, value);
  }
  return std::string(text) + (percent ? " %" : "");
}

std::string px(double v) { return format_number("%.1f", v); }

std::string point(const Axis& x, const Axis& y, double px_x, double value) {
  return px(x.at(px_x)) + "," + px(y.at(value));
}

// The curve, in as many pieces as there are unbroken runs.
std::string line_path(const Chart& chart, const ChartSeries& s, const Axis& x, const Axis& y) {
  std::string path;
  bool pen_down = false;
  for (const auto& [px_x, value] : s.points) {
    const bool shown = drawable(chart, value);
    if (shown) path += (pen_down ? "L" : "M") + point(x, y, px_x, value);
    pen_down = shown;
  }
  return path;
}

std::string band_path(const Chart& chart, const ChartSeries& s, const Axis& x, const Axis& y) {
  std::string there;
  std::string back;
  for (size_t i = 0; i < std::min(s.range.size(), s.points.size()); ++i) {
    const auto& [low, high] = s.range[i];
    if (!drawable(chart, low) || !drawable(chart, high)) continue;
    there += (there.empty() ? "M" : "L") + point(x, y, s.points[i].first, high);
    back = "L" + point(x, y, s.points[i].first, low) + back;
  }
  return there.empty() ? "" : there + back + "Z";
}

std::string text_at(double x, double y, const char* css_class, const char* anchor,
                    std::string_view text) {
  return concat("<text class=\"", css_class, "\" x=\"", px(x), "\" y=\"", px(y),
                "\" text-anchor=\"", anchor, "\">", html_escape(text), "</text>");
}

std::string grid_and_ticks(const Chart& chart, const Axis& x, const Axis& y) {
  std::string svg;
  const auto line = [&](double x1, double y1, double x2, double y2, const char* css_class) {
    svg += concat("<line class=\"", css_class, "\" x1=\"", px(x1), "\" y1=\"", px(y1), "\" x2=\"",
                  px(x2), "\" y2=\"", px(y2), "\"/>");
  };
  for (const double v : y.ticks) {
    line(x.pixel_low, y.at(v), x.pixel_high, y.at(v), "grid");
    svg += text_at(x.pixel_low - 8, y.at(v) + 4, "tick", "end", tick_label(y, v, chart.percent));
  }
  for (const double v : x.ticks) {
    line(x.at(v), y.pixel_low, x.at(v), y.pixel_low + 4, "axis");
    svg += text_at(x.at(v), y.pixel_low + 18, "tick", "middle", tick_label(x, v, false));
  }
  line(x.pixel_low, y.pixel_low, x.pixel_high, y.pixel_low, "axis");
  return svg;
}

std::string draw_series(const Chart& chart, const ChartSeries& s, const Axis& x, const Axis& y) {
  std::string svg;
  const std::string band = band_path(chart, s, x, y);
  if (!band.empty())
    svg += concat("<path class=\"band fill-", s.css_class, "\" d=\"", band, "\"/>");
  svg += concat("<path class=\"line stroke-", s.css_class, "\" d=\"", line_path(chart, s, x, y),
                "\"/>");
  if (!s.markers) return svg;
  for (const auto& [px_x, value] : s.points) {
    if (!drawable(chart, value)) continue;
    const std::string shown =
        chart.percent ? format_number("%.2f %%", value * 100) : format_number("%.4g", value);
    svg += concat("<circle class=\"dot fill-", s.css_class, "\" cx=\"", px(x.at(px_x)), "\" cy=\"",
                  px(y.at(value)), "\" r=\"3\"><title>",
                  html_escape(concat(s.name, ", ", chart.x_label, " ", format_number("%.10g", px_x),
                                     ": ", shown)),
                  "</title></circle>");
  }
  return svg;
}

// At the top right, from right to left.
std::string legend(const Chart& chart, const std::vector<const ChartSeries*>& drawn, double right) {
  std::string svg;
  double at = right;
  for (auto it = drawn.rbegin(); chart.legend && it != drawn.rend(); ++it) {
    const ChartSeries& s = **it;
    at -= 6.5 * static_cast<double>(s.name.size());
    svg += text_at(at, 20, "legend", "start", s.name);
    svg += concat("<line class=\"line stroke-", s.css_class, "\" x1=\"", px(at - 24),
                  "\" y1=\"16\" x2=\"", px(at - 6), "\" y2=\"16\"/>");
    at -= 40;
  }
  return text_at(0, 20, "chart-title", "start", chart.title) + svg;
}

}  // namespace

std::string to_svg(const Chart& chart) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double x_low = kInfinity, x_high = -kInfinity, y_low = kInfinity, y_high = -kInfinity;
  std::vector<const ChartSeries*> drawn;
  for (const ChartSeries& s : chart.series) {
    bool any = false;
    for (size_t i = 0; i < s.points.size(); ++i) {
      const auto& [px_x, value] = s.points[i];
      if (!drawable(chart, value)) continue;
      any = true;
      x_low = std::min(x_low, px_x);
      x_high = std::max(x_high, px_x);
      const bool ranged = i < s.range.size() && drawable(chart, s.range[i].first) &&
                          drawable(chart, s.range[i].second);
      y_low = std::min(y_low, ranged ? std::min(value, s.range[i].first) : value);
      y_high = std::max(y_high, ranged ? std::max(value, s.range[i].second) : value);
    }
    if (any) drawn.push_back(&s);
  }
  if (drawn.empty()) return "";

  Axis x = x_axis(chart, x_low, x_high);
  Axis y = y_axis(chart, y_low, y_high);
  x.pixel_low = 62;
  x.pixel_high = chart.width - 24;
  y.pixel_low = chart.height - 44;
  y.pixel_high = 40;

  std::string svg = concat("<svg class=\"chart", chart.width > 700 ? " wide" : "",
                           "\" viewBox=\"0 0 ", chart.width, " ", chart.height,
                           "\" role=\"img\" aria-label=\"", html_escape(chart.title), "\">");
  svg += grid_and_ticks(chart, x, y);
  for (const ChartSeries* s : drawn) svg += draw_series(chart, *s, x, y);
  svg += legend(chart, drawn, x.pixel_high);
  svg +=
      text_at((x.pixel_low + x.pixel_high) / 2, chart.height - 6, "label", "middle", chart.x_label);
  const double middle = (y.pixel_low + y.pixel_high) / 2;
  svg += concat("<text class=\"label\" text-anchor=\"middle\" transform=\"translate(12 ",
                px(middle), ") rotate(-90)\">", html_escape(chart.y_label), "</text>");
  return svg + "</svg>";
}

std::string html_escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:  // HTML has no place for control characters
        out += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? ' ' : c;
    }
  }
  return out;
}

std::string format_number(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

}  // namespace kiln::train
