#include "cli/runs/compare_page.h"

#include <algorithm>
#include <limits>
#include <map>

#include "cli/machine.h"
#include "cli/train/metric_list.h"
#include "cli/train/run_report.h"
#include "kiln/core/error.h"
#include "kiln/train/chart.h"
#include "kiln/train/report_style.h"
#include "kiln/train/text.h"

namespace kiln::cli {

namespace {

using train::html_escape;

// Eight colours, then the same as dashed lines.
constexpr const char* kStyle = R"css(
:root { --red: 208 44 62; --teal: 14 140 158; --brown: 146 96 40; --pink: 206 64 148; }
@media (prefers-color-scheme: dark) { :root { --red: 255 118 128; --teal: 80 205 220;
  --brown: 214 168 104; --pink: 250 138 204; } }
.stroke-e { stroke: rgb(var(--red)); } .fill-e { fill: rgb(var(--red)); }
.stroke-f { stroke: rgb(var(--teal)); } .fill-f { fill: rgb(var(--teal)); }
.stroke-g { stroke: rgb(var(--brown)); } .fill-g { fill: rgb(var(--brown)); }
.stroke-h { stroke: rgb(var(--pink)); } .fill-h { fill: rgb(var(--pink)); }
.stroke-i { stroke: rgb(var(--blue)); } .fill-i { fill: rgb(var(--blue)); }
.stroke-j { stroke: rgb(var(--orange)); } .fill-j { fill: rgb(var(--orange)); }
.stroke-k { stroke: rgb(var(--green)); } .fill-k { fill: rgb(var(--green)); }
.stroke-l { stroke: rgb(var(--purple)); } .fill-l { fill: rgb(var(--purple)); }
.stroke-m { stroke: rgb(var(--red)); } .fill-m { fill: rgb(var(--red)); }
.stroke-n { stroke: rgb(var(--teal)); } .fill-n { fill: rgb(var(--teal)); }
.stroke-o { stroke: rgb(var(--brown)); } .fill-o { fill: rgb(var(--brown)); }
.stroke-p { stroke: rgb(var(--pink)); } .fill-p { fill: rgb(var(--pink)); }
.stroke-i, .stroke-j, .stroke-k, .stroke-l, .stroke-m, .stroke-n, .stroke-o, .stroke-p {
  stroke-dasharray: 6 5; }
.legend-row { display: flex; flex-wrap: wrap; gap: 4px 20px; margin: 0 0 14px; padding: 0; list-style: none; }
.legend-row li { white-space: nowrap; }
.swatch { width: 26px; height: 10px; vertical-align: middle; margin-right: 7px; }
.runs { width: 100%; font-size: 14px; }
.runs th, .runs td { text-align: left; padding: 7px 12px 7px 0; border-bottom: 1px solid var(--rule);
  white-space: nowrap; }
.runs th { color: var(--soft); font-size: 13px; }
.runs tbody tr:last-child td { border-bottom: 0; }
.runs td.wrap { white-space: normal; overflow-wrap: anywhere; min-width: 120px; max-width: 340px; }
.runs th.sticky, .runs td.sticky { position: sticky; left: 0; background: var(--card); padding-right: 16px; }
.none { color: var(--soft); }
)css";

std::string colour_of(size_t run) { return std::string(1, static_cast<char>('a' + run % 16)); }

std::string swatch(size_t run) {
  return concat(
      "<svg class=\"swatch\" viewBox=\"0 0 26 10\" aria-hidden=\"true\"><line class=\"line ",
      "stroke-", colour_of(run), "\" x1=\"1\" y1=\"5\" x2=\"25\" y2=\"5\"/></svg>");
}

std::string cell(const std::string& text, const char* kind = "") {
  return concat("<td", kind, ">", html_escape(text), "</td>");
}

std::string runs_table(const std::vector<RunRecord>& runs) {
  std::string html =
      "<div class=\"scroll\"><table class=\"runs\"><thead><tr><th class=\"sticky\">run</th>"
      "<th>state</th><th>best</th><th>test</th><th>model</th><th>data</th><th>parameters</th>"
      "<th>epochs</th><th>time</th></tr></thead><tbody>";
  for (size_t i = 0; i < runs.size(); ++i) {
    const RunRecord& run = runs[i];
    std::string tests;
    for (const auto& [name, value] : run.state.test) {
      const std::string metric = name.substr(name.find('/') + 1);
      tests += concat(tests.empty() ? "" : ", ", metric, " ", value_text(metric, value));
    }
    html += concat("<tr><td class=\"sticky\">", swatch(i), html_escape(run.name), "</td>");
    html += cell(run.status);
    html += cell(run.best_epoch == 0
                     ? "-"
                     : concat(run.best_metric, " ", value_text(run.best_metric, run.best),
                              ", epoch ", run.best_epoch));
    html += cell(tests.empty() ? "-" : tests) + cell(run.model()) + cell(run.data());
    html += cell(run.state.parameters > 0 ? train::grouped(run.state.parameters) : "-");
    html += cell(run.state.epochs > 0 ? concat(run.epochs.size(), " of ", run.state.epochs)
                                      : concat(run.epochs.size()));
    html += cell(train::duration(run.seconds)) + "</tr>";
  }
  return html + "</tbody></table></div>";
}

std::string legend(const std::vector<RunRecord>& runs) {
  std::string html = "<ul class=\"legend-row\">";
  for (size_t i = 0; i < runs.size(); ++i) {
    html += concat("<li>", swatch(i), html_escape(runs[i].name), "</li>");
  }
  return html + "</ul>";
}

// What was measured of any run: validation before training, the loss first.
std::vector<std::string> metrics_of(const std::vector<RunRecord>& runs) {
  std::vector<std::string> all;
  for (const RunRecord& run : runs) {
    for (const std::string& name : run.metrics()) {
      if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(name);
    }
  }
  const auto metric = [](const std::string& name) { return name.substr(name.find('/') + 1); };
  std::vector<std::string> order, out;
  for (const std::string& name : all) {
    if (std::find(order.begin(), order.end(), metric(name)) == order.end()) {
      order.push_back(metric(name));
    }
  }
  for (const std::string& wanted : order) {
    for (const bool valid : {true, false}) {
      for (const std::string& name : all) {
        if (metric(name) == wanted && name.starts_with("valid/") == valid) out.push_back(name);
      }
    }
  }
  return out;
}

// On a linear axis the smaller curves would lie on one line.
bool spans_decades(const train::Chart& chart) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const train::ChartSeries& series : chart.series) {
    for (const auto& [x, y] : series.points) {
      low = std::min(low, y);
      high = std::max(high, y);
    }
  }
  return low > 0 && high > 100 * low;
}

std::string charts(const std::vector<RunRecord>& runs) {
  std::string html;
  for (const std::string& metric : metrics_of(runs)) {
    train::Chart chart;
    chart.title = metric;
    chart.y_label = metric;
    chart.integer_x = true;
    chart.legend = false;
    chart.percent = is_share(metric);
    chart.x_label = "epoch";
    for (size_t i = 0; i < runs.size(); ++i) {
      bool by_step = false;
      train::ChartSeries series{
          runs[i].name, colour_of(i), runs[i].curve(metric, by_step), {}, false};
      series.markers = series.points.size() <= 60;
      if (by_step && !series.points.empty()) chart.x_label = "step";
      chart.series.push_back(std::move(series));
    }
    chart.log_y = spans_decades(chart);
    if (chart.log_y) chart.y_label += ", logarithmic";
    html += train::to_svg(chart);
  }
  return html.empty() ? "<p class=\"none\">Nothing was measured yet.</p>"
                      : concat(legend(runs), "<div class=\"pair\">", html, "</div>");
}

std::string differences(const std::vector<RunRecord>& runs) {
  const auto rows = differing_fields(runs);
  if (rows.empty()) return "<p class=\"none\">The configurations are the same.</p>";
  std::string html =
      "<div class=\"scroll\"><table class=\"runs\"><thead><tr><th class=\"sticky\">field</th>";
  for (size_t i = 0; i < runs.size(); ++i) {
    html += concat("<th>", swatch(i), html_escape(runs[i].name), "</th>");
  }
  html += "</tr></thead><tbody>";
  for (const auto& [field, values] : rows) {
    html += "<tr>" + cell(field, " class=\"sticky\"");
    for (const std::string& value : values) html += cell(value, " class=\"wrap\"");
    html += "</tr>";
  }
  return html + "</tbody></table></div>";
}

}  // namespace

std::vector<std::pair<std::string, std::vector<std::string>>> differing_fields(
    const std::vector<RunRecord>& runs) {
  std::vector<std::map<std::string, std::string>> maps;
  std::vector<std::string> order;
  for (const RunRecord& run : runs) {
    maps.emplace_back();
    for (const auto& [name, value] : flat_fields(run.config)) {
      maps.back()[name] = value;
      if (std::find(order.begin(), order.end(), name) == order.end()) order.push_back(name);
    }
  }
  std::vector<std::pair<std::string, std::vector<std::string>>> out;
  for (const std::string& name : order) {
    if (name == "out") continue;
    std::vector<std::string> values;
    for (const auto& map : maps) {
      const auto found = map.find(name);
      values.push_back(found == map.end() ? "-" : found->second);
    }
    const bool alike = std::all_of(values.begin(), values.end(),
                                   [&](const std::string& value) { return value == values[0]; });
    if (!alike) out.emplace_back(name, std::move(values));
  }
  return out;
}

std::string compare_page(const std::vector<RunRecord>& runs) {
  const std::string title = concat(runs.size(), runs.size() == 1 ? " run" : " runs");
  return concat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      // The browser itself then refuses to load anything from elsewhere.
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>",
      title, "</title>\n<style>", train::kReportStyle, kStyle,
      "</style></head><body><main>\n<header><h1>", title, " compared</h1><p>", date_and_time(),
      "</p></header>\n<section><h2>Runs</h2>", runs_table(runs),
      "</section>\n<section><h2>Curves</h2>", charts(runs),
      "</section>\n<section><h2>What differs in their configurations</h2>", differences(runs),
      "</section>\n<footer>Made by Kiln</footer>\n</main></body></html>\n");
}

}  // namespace kiln::cli
