#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "cli/numbers.h"
#include "cli/runs/run_record.h"
#include "cli/runs/runs_command.h"
#include "cli/suggest.h"
#include "cli/train/metric_list.h"
#include "cli/usage_error.h"
#include "kiln/core/error.h"
#include "kiln/dashboard/text_plot.h"
#include "kiln/train/progress.h"

namespace kiln::cli {

namespace {

struct PlotFlags {
  std::string run;
  std::string metric = "loss";
  int width = 0;
  int height = 16;
  bool ascii = false;
  bool json = false;
};

// "valid/loss" itself, or every split's "loss".
std::vector<std::string> chosen_metrics(const RunRecord& run, const std::string& wanted) {
  const std::vector<std::string> all = run.metrics();
  if (std::find(all.begin(), all.end(), wanted) != all.end()) return {wanted};
  std::vector<std::string> out, legal = all;
  for (const std::string& name : all) {
    const std::string metric = name.substr(name.find('/') + 1);
    if (metric == wanted) out.push_back(name);
    if (std::find(legal.begin(), legal.end(), metric) == legal.end()) legal.push_back(metric);
  }
  if (out.empty()) {
    std::string names;
    for (const std::string& name : legal) names += (names.empty() ? "" : ", ") + name;
    throw UsageError(
        concat("plot: there is no metric '", wanted, "'", did_you_mean(wanted, legal),
               names.empty() ? " (nothing was measured yet)" : " (legal: " + names + ")"));
  }
  return out;
}

bool has_colours() {
  const char* term = std::getenv("TERM");
  return isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr && term != nullptr &&
         std::string(term) != "dumb";
}

int plot(const PlotFlags& flags) {
  const RunRecord run = read_run(flags.run);
  dashboard::TextPlot chart;
  Json json = Json::Object();
  bool by_step = false;
  for (const std::string& metric : chosen_metrics(run, flags.metric)) {
    bool step = false;
    dashboard::TextSeries series{metric, run.curve(metric, step)};
    by_step = by_step || step;
    Json points = Json::Array();
    for (const auto& [x, y] : series.points) {
      points.add(Json(Json::Array{Json(static_cast<int64_t>(x)), Json(y)}));
    }
    json.add(metric, std::move(points));
    chart.series.push_back(std::move(series));
  }
  if (flags.json) {
    json.add("x", by_step ? "step" : "epoch");
    std::printf("%s\n", encode_json(json).c_str());
    return 0;
  }
  chart.title = concat(run.name, ": ", flags.metric);
  chart.x_label = by_step ? "step" : "epoch";
  chart.width = flags.width > 0 ? flags.width : train::terminal_width(stdout) - 1;
  chart.height = flags.height;
  chart.unicode = !flags.ascii && train::environment_is_utf8();
  chart.colour = has_colours();
  chart.percent = is_share(flags.metric);
  std::fputs(to_text(chart).c_str(), stdout);
  return 0;
}

}  // namespace

void add_plot(CLI::App& app, int& status) {
  CLI::App* command =
      app.add_subcommand("plot", "Draws a metric of a run over its epochs, in the terminal.");
  command->group("Commands");
  auto flags = std::make_shared<PlotFlags>();
  command->add_option("RUN", flags->run, "folder of the run")->required()->type_name("");
  command
      ->add_option("METRIC", flags->metric,
                   "accuracy, or valid/accuracy of one set alone\n(default: loss)")
      ->type_name("");
  command->add_option("--width", flags->width, "columns (default: the terminal's)")
      ->type_name("N")
      ->check(whole_number(30, 1000));
  command->add_option("--height", flags->height, "rows (default: 16)")
      ->type_name("N")
      ->check(whole_number(4, 200));
  command->add_flag("--ascii", flags->ascii, "letters alone");
  command->add_flag("--json", flags->json, "print the numbers as JSON");
  command->callback([flags, &status] { status = plot(*flags); });
}

}  // namespace kiln::cli
