#include "kiln/train/report.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "kiln/core/error.h"
#include "kiln/io/atomic_file.h"
#include "kiln/io/image.h"
#include "kiln/train/chart.h"
#include "kiln/train/report_style.h"

namespace kiln::train {

namespace {

std::string percent(double fraction) {
  return std::isfinite(fraction) ? format_number("%.2f %%", fraction * 100) : "–";
}

std::string number(const char* format, double value) {
  return std::isfinite(value) ? format_number(format, value) : "–";
}

std::string duration(double seconds) {
  if (!std::isfinite(seconds)) return "–";
  if (seconds < 60) return format_number("%.1f s", seconds);
  const auto whole = static_cast<long long>(seconds + 0.5);
  if (whole < 3600) return concat(whole / 60, " min ", whole % 60, " s");
  return concat(whole / 3600, " h ", whole / 60 % 60, " min");
}

std::string base64(const std::string& bytes) {
  static constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) {
      group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    }
    for (size_t k = 0; k < 4; ++k) {
      out += i + k <= bytes.size() ? kDigits[group >> (18 - 6 * k) & 63] : '=';
    }
  }
  return out;
}

std::string section(const char* title, const std::string& body) {
  return body.empty() ? "" : concat("<section><h2>", title, "</h2>", body, "</section>\n");
}

std::string tile(std::string_view what, const std::string& value) {
  return concat("<div class=\"tile\"><div class=\"value\">", value, "</div><div class=\"what\">",
                html_escape(what), "</div></div>");
}

// The few numbers that a reader wants first.
std::string headline(const TrainingReport& report) {
  std::string tiles;
  if (std::isfinite(report.final_accuracy)) {
    tiles += tile("test accuracy", percent(report.final_accuracy));
  }
  for (const auto& [name, value] : report.headline) tiles += tile(name, html_escape(value));
  double seconds = 0;
  const EpochRecord* best = nullptr;
  for (const EpochRecord& e : report.epochs) {
    if (std::isfinite(e.seconds)) seconds += e.seconds;
    if (std::isfinite(e.valid_accuracy) &&
        (best == nullptr || e.valid_accuracy > best->valid_accuracy)) {
      best = &e;
    }
  }
  if (best != nullptr) {
    tiles += tile("best validation accuracy", percent(best->valid_accuracy));
  }
  if (!report.epochs.empty()) tiles += tile("epochs", concat(report.epochs.size()));
  if (seconds > 0) tiles += tile("training time", duration(seconds));
  return tiles.empty() ? "" : concat("<div class=\"tiles\">", tiles, "</div>\n");
}

std::string epoch_chart(const TrainingReport& report, const char* title, const char* y_label,
                        double EpochRecord::*train, double EpochRecord::*valid, bool as_percent) {
  Chart chart;
  chart.title = title;
  chart.x_label = "epoch";
  chart.y_label = y_label;
  chart.percent = as_percent;
  chart.integer_x = true;
  ChartSeries first{"training", "a", {}, {}, report.epochs.size() <= 60};
  ChartSeries second{"validation", "b", {}, {}, report.epochs.size() <= 60};
  for (const EpochRecord& e : report.epochs) {
    first.points.emplace_back(static_cast<double>(e.epoch), e.*train);
    second.points.emplace_back(static_cast<double>(e.epoch), e.*valid);
  }
  chart.series = {first, second};
  return to_svg(chart);
}

// A long run has more steps than the chart has pixels: each point stands for a stretch of steps,
// its band for the lowest and highest loss there, its line for the running mean (bias-corrected) up
// to its end.
std::string step_chart(const std::vector<double>& loss) {
  constexpr size_t kMostPoints = 360;
  if (loss.empty()) return "";
  const size_t n = loss.size();
  const size_t points = std::min(n, kMostPoints);
  const double keep = 1 - 1 / std::clamp(static_cast<double>(n) / 40, 1.0, 500.0);
  ChartSeries s{"running mean, and range", "a", {}, {}, false};
  double mean = 0;
  double weight = 0;
  for (size_t p = 0; p < points; ++p) {
    double low = kNotMeasured;
    double high = kNotMeasured;
    const size_t end = (p + 1) * n / points;
    for (size_t i = p * n / points; i < end; ++i) {
      if (!std::isfinite(loss[i])) continue;
      low = std::fmin(low, loss[i]);
      high = std::fmax(high, loss[i]);
      mean = keep * mean + (1 - keep) * loss[i];
      weight = keep * weight + (1 - keep);
    }
    s.points.emplace_back(static_cast<double>(end),
                          weight > 0 && std::isfinite(low) ? mean / weight : kNotMeasured);
    s.range.emplace_back(low, high);
  }
  Chart chart;
  // On a linear axis a loss that falls far is a line along the bottom. A few batches with almost no
  // loss must not stretch the axis.
  double least = std::numeric_limits<double>::infinity();
  double first = kNotMeasured;
  for (const auto& [step, value] : s.points) {
    least = std::fmin(least, value);
    if (std::isnan(first)) first = value;
  }
  chart.log_y = least > 0 && first > 10 * least;
  if (chart.log_y) {
    for (auto& [low, high] : s.range) low = std::max(low, std::min(least / 5, high));
  }
  chart.title = "Training loss by step";
  chart.x_label = "step";
  chart.y_label = chart.log_y ? "loss, logarithmic" : "loss";
  chart.series = {s};
  chart.integer_x = true;
  chart.width = 1060;
  return to_svg(chart);
}

std::string curves(const TrainingReport& report) {
  const std::string loss = epoch_chart(report, "Loss", "loss", &EpochRecord::train_loss,
                                       &EpochRecord::valid_loss, false);
  const std::string accuracy =
      epoch_chart(report, "Accuracy", "accuracy", &EpochRecord::train_accuracy,
                  &EpochRecord::valid_accuracy, true);
  const std::string steps = step_chart(report.step_loss);
  std::string body;
  if (!loss.empty() || !accuracy.empty()) {
    body += concat("<div class=\"pair\">", loss, accuracy, "</div>");
  }
  return steps.empty() ? body : concat(body, "<div class=\"scroll\">", steps, "</div>");
}

std::string metric_charts(const TrainingReport& report) {
  static constexpr const char* kClasses[] = {"a", "b", "c", "d"};
  std::string body;
  for (const MetricCurve& metric : report.metrics) {
    Chart chart;
    chart.title = metric.name;
    chart.x_label = "epoch";
    chart.y_label = metric.name;
    chart.integer_x = true;
    for (size_t i = 0; i < metric.lines.size() && i < std::size(kClasses); ++i) {
      const MetricCurve::Line& line = metric.lines[i];
      chart.series.push_back({line.name, kClasses[i], line.points, {}, line.points.size() <= 60});
    }
    body += to_svg(chart);
  }
  return body.empty() ? body : concat("<div class=\"pair\">", body, "</div>");
}

size_t class_count(const TrainingReport& report) {
  const size_t cells = report.confusion.size();
  auto n = static_cast<size_t>(std::lround(std::sqrt(static_cast<double>(cells))));
  if (n * n != cells ||
      (cells > 0 && !report.class_names.empty() && n != report.class_names.size())) {
    throw_error<ValueError>("to_html: bad confusion matrix; got ", cells, " numbers for ",
                            report.class_names.size(), " class names; expected their square");
  }
  return n;
}

std::string class_name(const TrainingReport& report, int64_t index) {
  const bool named = index >= 0 && static_cast<size_t>(index) < report.class_names.size();
  return named ? html_escape(report.class_names[static_cast<size_t>(index)]) : concat(index);
}

// A coloured cell. `strength` 0 to 1 mixes the colour in; a strong one needs light text.
std::string cell(const char* kind, double strength, int64_t count, const std::string& tooltip) {
  if (count == 0) return "<td class=\"zero\">·</td>";
  return concat("<td class=\"", kind, strength > 0.7 ? " strong" : "",
                "\" style=\"--a:", format_number("%.2f", strength), "\" title=\"", tooltip, "\">",
                count, "</td>");
}

std::string confusion_table(const TrainingReport& report) {
  const size_t n = class_count(report);
  if (n == 0) return "";
  const auto at = [&](size_t i, size_t k) { return report.confusion[i * n + k]; };
  int64_t most_wrong = 1;
  std::vector<int64_t> label_total(n, 0);
  std::vector<int64_t> predicted_total(n, 0);
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < n; ++k) {
      label_total[i] += at(i, k);
      predicted_total[k] += at(i, k);
      if (i != k) most_wrong = std::max(most_wrong, at(i, k));
    }
  }
  const auto share = [](int64_t part, int64_t whole) {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : kNotMeasured;
  };
  const auto rate = [&](int64_t part, int64_t whole) {
    return number("%.1f %%", share(part, whole) * 100);
  };

  std::string html = concat(
      "<div class=\"scroll\"><table class=\"confusion\"><thead><tr><td></td>"
      "<th class=\"axis-name\" colspan=\"",
      n, "\" scope=\"colgroup\">predicted</th></tr><tr><th>true</th>");
  for (size_t k = 0; k < n; ++k) {
    html += concat("<th scope=\"col\">", class_name(report, static_cast<int64_t>(k)), "</th>");
  }
  html += "<th class=\"sum\" scope=\"col\">recall</th></tr></thead><tbody>";
  for (size_t i = 0; i < n; ++i) {
    const std::string label = class_name(report, static_cast<int64_t>(i));
    html += concat("<tr><th scope=\"row\">", label, "</th>");
    for (size_t k = 0; k < n; ++k) {
      const std::string tooltip =
          concat("true ", label, ", predicted ", class_name(report, static_cast<int64_t>(k)), ": ",
                 percent(share(at(i, k), label_total[i])));
      const double wrong = static_cast<double>(at(i, k)) / static_cast<double>(most_wrong);
      html += i == k
                  ? cell("right", 0.15 + 0.75 * share(at(i, k), label_total[i]), at(i, k), tooltip)
                  : cell("wrong", 0.12 + 0.78 * wrong, at(i, k), tooltip);
    }
    html += concat("<td class=\"sum\">", rate(at(i, i), label_total[i]), "</td></tr>");
  }
  html += "</tbody><tfoot><tr><th scope=\"row\">precision</th>";
  for (size_t k = 0; k < n; ++k) {
    html += concat("<td class=\"sum\">", rate(at(k, k), predicted_total[k]), "</td>");
  }
  return html + "<td></td></tr></tfoot></table></div>";
}

std::string mistake_gallery(const TrainingReport& report) {
  std::string html;
  for (const Mistake& m : report.mistakes) {
    const std::string label = class_name(report, m.label);
    const std::string predicted = class_name(report, m.predicted);
    html += concat("<figure><img alt=\"a ", label, " taken for ", predicted,
                   "\" src=\"data:image/png;base64,",
                   base64(m.image.shape().rank() == 3 ? io::encode_png_rgb(m.image)
                                                      : io::encode_png_gray(m.image)),
                   "\"><figcaption><b>", label, "</b> as <b class=\"bad\">", predicted, "</b>");
    if (std::isfinite(m.probability)) {
      html += concat("<br>", format_number("%.0f %%", m.probability * 100));
    }
    html += "</figcaption></figure>";
  }
  return html.empty() ? "" : concat("<div class=\"gallery\">", html, "</div>");
}

struct EpochColumn {
  const char* name;
  double EpochRecord::*field;
  std::string (*text)(double value);
};

std::string epoch_table(const TrainingReport& report) {
  if (report.epochs.empty()) return "";
  const auto loss = [](double value) { return number("%.4f", value); };
  const auto rate = [](double value) { return number("%.3g", value); };
  std::vector<EpochColumn> columns{
      {"training loss", &EpochRecord::train_loss, loss},
      {"training accuracy", &EpochRecord::train_accuracy, percent},
      {"validation loss", &EpochRecord::valid_loss, loss},
      {"validation accuracy", &EpochRecord::valid_accuracy, percent},
      {"learning rate", &EpochRecord::learning_rate, rate},
      {"time", &EpochRecord::seconds, duration},
  };
  std::erase_if(columns, [&](const EpochColumn& column) {  // those that nothing was measured for
    return std::none_of(report.epochs.begin(), report.epochs.end(),
                        [&](const EpochRecord& e) { return std::isfinite(e.*column.field); });
  });
  std::string html = "<div class=\"scroll\"><table class=\"epochs\"><thead><tr><th>epoch</th>";
  for (const EpochColumn& column : columns) html += concat("<th>", column.name, "</th>");
  html += "</tr></thead><tbody>";
  for (const EpochRecord& e : report.epochs) {
    html += concat("<tr><td>", e.epoch, "</td>");
    for (const EpochColumn& column : columns) {
      html += concat("<td>", column.text(e.*column.field), "</td>");
    }
    html += "</tr>";
  }
  return html + "</tbody></table></div>";
}

std::string fact_list(const char* title, const TrainingReport::Facts& facts) {
  if (facts.empty()) return "";
  std::string html = concat("<div><h2>", title, "</h2><dl>");
  for (const auto& [name, value] : facts) {
    html += concat("<dt>", html_escape(name), "</dt><dd>", html_escape(value), "</dd>");
  }
  return html + "</dl></div>";
}

}  // namespace

std::string to_html(const TrainingReport& report) {
  const std::string title = html_escape(report.title);
  std::string html = concat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      // The browser itself then refuses to load anything from elsewhere.
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; "
      "style-src 'unsafe-inline'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>",
      title, "</title>\n<style>", kReportStyle, "</style></head><body><main>\n<header><h1>", title,
      "</h1>");
  if (!report.subtitle.empty()) html += concat("<p>", html_escape(report.subtitle), "</p>");
  html += "</header>\n" + headline(report);
  html += section("Learning curves", curves(report));
  html += section("Metrics", metric_charts(report));
  html += section("Confusion matrix", confusion_table(report));
  html += section("Mistakes", mistake_gallery(report));
  html += section("Epochs", epoch_table(report));
  const std::string facts =
      fact_list("Configuration", report.config) + fact_list("Machine", report.machine);
  if (!facts.empty()) html += concat("<section class=\"facts\">", facts, "</section>\n");
  return html + "<footer>Made by Kiln</footer>\n</main></body></html>\n";
}

void write_html_report(const std::string& path, const TrainingReport& report) {
  io::write_file_atomically("write_html_report", path, to_html(report));
}

}  // namespace kiln::train
