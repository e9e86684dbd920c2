#include "cli/runs/runs_command.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/runs/compare_page.h"
#include "cli/runs/run_record.h"
#include "cli/train/run_report.h"
#include "cli/usage_error.h"
#include "kiln/core/error.h"
#include "kiln/io/atomic_file.h"
#include "kiln/train/text.h"

namespace kiln::cli {

namespace {

struct RunsFlags {
  std::string folder = "runs";
  bool json = false;
};

struct CompareFlags {
  std::vector<std::string> folders;
  std::string out = "compare.html";
  bool json = false;
};

// The first columns aligned left, as texts are.
std::string left_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths(rows[0].size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], train::text_width(row[i]));
    }
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i] + std::string(widths[i] - train::text_width(row[i]) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

std::string epochs_text(const RunRecord& run) {
  return run.state.epochs > 0 ? concat(run.epochs.size(), "/", run.state.epochs)
                              : concat(run.epochs.size());
}

std::string best_text(const RunRecord& run) {
  if (run.best_epoch == 0) return "-";
  return concat(run.best_metric, " ", value_text(run.best_metric, run.best), " (", run.best_epoch,
                ")");
}

// Below the folder that was asked for, where it is there.
std::string shown_path(const RunRecord& run, const std::string& folder) {
  const std::string below = std::filesystem::path(run.folder).lexically_relative(folder).string();
  return below.empty() || below == "." ? run.name : below;
}

Json to_json(const RunRecord& run) {
  Json out = Json::Object();
  out.add("folder", run.folder);
  out.add("model", run.model());
  out.add("data", run.data());
  out.add("state", run.status);
  if (!run.state.error.empty()) out.add("error", run.state.error);
  out.add("parameters", run.state.parameters);
  out.add("epochs", static_cast<int64_t>(run.epochs.size()));
  out.add("epochs_planned", run.state.epochs);
  out.add("seconds", run.seconds);
  Json best = Json::Object();
  if (run.best_epoch > 0) {
    best.add("metric", run.best_metric);
    best.add("value", run.best);
    best.add("epoch", run.best_epoch);
  }
  out.add("best", std::move(best));
  Json test = Json::Object();
  for (const auto& [name, value] : run.state.test) test.add(name, value);
  out.add("test", std::move(test));
  return out;
}

int list_runs(const RunsFlags& flags) {
  const std::vector<RunRecord> runs = find_runs(flags.folder);
  if (flags.json) {
    Json out = Json::Array();
    for (const RunRecord& run : runs) out.add(to_json(run));
    std::printf("%s\n", encode_json(out).c_str());
    return 0;
  }
  if (runs.empty()) {
    std::printf("no runs in %s\n", flags.folder.c_str());
    return 0;
  }
  std::vector<std::vector<std::string>> rows{
      {"run", "model", "data", "epochs", "best (epoch)", "time", "state"}};
  for (const RunRecord& run : runs) {
    rows.push_back({shown_path(run, flags.folder), run.model(), run.data(), epochs_text(run),
                    best_text(run), train::duration(run.seconds), run.status});
  }
  std::fputs(left_table(rows).c_str(), stdout);
  return 0;
}

// A folder of runs stands for all of them.
std::vector<RunRecord> chosen(const std::vector<std::string>& folders) {
  std::vector<RunRecord> out;
  for (const std::string& folder : folders) {
    std::vector<RunRecord> found = find_runs(folder);
    if (found.empty()) throw_error<IoError>("'", folder, "' holds no run");
    std::move(found.begin(), found.end(), std::back_inserter(out));
  }
  // Two runs of one name are told apart by their folders.
  for (size_t i = 0; i < out.size(); ++i) {
    for (size_t k = 0; k < out.size(); ++k) {
      if (i != k && out[i].name == out[k].name) out[i].name = out[i].folder;
    }
  }
  return out;
}

int compare(const CompareFlags& flags) {
  const std::vector<RunRecord> runs = chosen(flags.folders);
  if (flags.json) {
    Json out = Json::Object();
    Json list = Json::Array(), fields = Json::Object();
    for (const RunRecord& run : runs) list.add(to_json(run));
    for (const auto& [name, values] : differing_fields(runs)) {
      Json row = Json::Array();
      for (const std::string& value : values) row.add(Json(value));
      fields.add(name, std::move(row));
    }
    out.add("runs", std::move(list));
    out.add("differing", std::move(fields));
    std::printf("%s\n", encode_json(out).c_str());
    return 0;
  }
  io::write_file_atomically("compare", flags.out, compare_page(runs));
  std::printf("wrote %s: %zu runs\n", flags.out.c_str(), runs.size());
  return 0;
}

}  // namespace

void add_runs(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "runs",
      "Lists training runs: model, data, epochs, what was best, time, state.\n"
      "Finds what `kiln train` and the Learner left, in a folder and those below it.");
  command->group("Commands");
  auto flags = std::make_shared<RunsFlags>();
  command->add_option("DIR", flags->folder, "folder with runs (default: runs)")->type_name("");
  command->add_flag("--json", flags->json, "print JSON");

  CLI::App* compares = command->add_subcommand(
      "compare",
      "Writes a page with the curves of several runs together, and what differs between them.\n"
      "The page is one HTML file that loads nothing from elsewhere.");
  compares->group("Commands");
  auto compared = std::make_shared<CompareFlags>();
  compares->add_option("DIR", compared->folders, "runs, or folders with runs")
      ->required()
      ->type_name("");
  compares->add_option("--out", compared->out, "file to write (default: compare.html)")
      ->type_name("FILE");
  compares->add_flag("--json", compared->json, "print JSON instead");
  compares->callback([compared, &status] { status = compare(*compared); });
  command->callback([flags, compares, &status] {
    if (!compares->parsed()) status = list_runs(*flags);
  });
}

}  // namespace kiln::cli
