#include "cli/train/train_command.h"

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/numbers.h"
#include "cli/runs/model_summary.h"
#include "cli/suggest.h"
#include "cli/train/example_data.h"
#include "cli/train/examples.h"
#include "cli/train/plan.h"
#include "cli/train/train_run.h"
#include "cli/usage_error.h"
#include "kiln/core/error.h"
#include "kiln/core/parallel.h"
#include "kiln/train/text.h"

namespace kiln::cli {

namespace {

namespace fs = std::filesystem;

struct TrainFlags {
  std::string config;
  std::string example;
  std::string out;
  std::vector<std::string> sets;
  std::optional<int64_t> epochs;
  std::optional<uint64_t> seed;
  std::string device;
  int threads = 0;
  bool resume = false;
  bool check = false;
  bool quiet = false;
  bool plain = false;
  bool dashboard = false;
};

// With --out the folder gets the configuration and data that it fits.
int example(const TrainFlags& flags) {
  const std::string text = example_config(flags.example);
  if (flags.out.empty()) {
    std::fputs(text.c_str(), stdout);
    return 0;
  }
  write_example(flags.example, flags.out);
  std::printf("wrote %s\ntrain with: kiln train %s\n",
              (fs::path(flags.out) / "config.json").c_str(),
              (fs::path(flags.out) / "config.json").c_str());
  return 0;
}

// The configuration with what the command line says, and where its relative paths begin.
Json read_config(const TrainFlags& flags, std::string& path, std::string& folder) {
  path = flags.config;
  if (fs::is_directory(path)) {
    if (!flags.resume && !flags.check) {
      throw UsageError("'" + path + "' is a folder; give a configuration, or --resume to go on " +
                       "with the run in it");
    }
    path = (fs::path(path) / "config.json").string();
    if (!fs::exists(path)) {
      throw_error<IoError>("nothing to resume: there is no '", path, "'");
    }
  }
  folder = fs::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  Json config = read_config_file(path);
  for (const std::string& assignment : flags.sets) set_field(config, assignment);
  if (flags.epochs) set_field(config, concat("epochs=", *flags.epochs));
  if (flags.seed) set_field(config, concat("seed=", *flags.seed));
  if (!flags.device.empty()) set_field(config, "device=\"" + flags.device + "\"");
  if (!flags.out.empty()) set_field(config, "out=\"" + flags.out + "\"");
  if (flags.out.empty() && fs::is_directory(flags.config)) {  // which may have been moved
    set_field(config, "out=\"" + flags.config + "\"");
  }
  return config;
}

int check(const TrainPlan& plan) {
  const ModelSummary summary =
      summarize(*plan.model.module, blank_input(plan.data.shape), plan.model.forward);
  std::printf("model      %s\n%s\n%s", plan.model.name.c_str(), describe(plan).c_str(),
              to_text(summary, 40).c_str());
  return 0;
}

int train(const TrainFlags& flags) {
  if (!flags.example.empty()) return example(flags);
  if (flags.config.empty()) {
    throw UsageError(
        "train needs a configuration, or --example KIND for one to start from "
        "(try kiln train --help)");
  }
  if (flags.threads > 0) set_num_threads(flags.threads);
  std::string path, folder;
  const Json config = read_config(flags, path, folder);
  TrainPlan plan = read_plan(path, config, folder);
  if (flags.check) return check(plan);
  const train::ProgressStyle style = flags.quiet   ? train::ProgressStyle::quiet
                                     : flags.plain ? train::ProgressStyle::plain
                                                   : train::ProgressStyle::automatic;
  return TrainRun(std::move(plan), flags.resume, style, flags.dashboard).run();
}

std::string kinds_text() {
  std::string out;
  size_t width = 0;
  for (const std::string& kind : example_kinds()) {
    if (width + kind.size() > 45) {
      out += "\n";
      width = 0;
    }
    out += kind + (kind == example_kinds().back() ? "" : ", ");
    width += kind.size() + 2;
  }
  return out;
}

}  // namespace

void add_train(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "train",
      "Trains a model of the library on data in files, as a configuration says.\n"
      "The run's folder gets its logs (JSON Lines, CSV, TensorBoard), checkpoints, the weights "
      "and\n"
      "an HTML report. Ctrl-C saves; --resume goes on as if nothing had happened.");
  command->group("Commands");
  auto flags = std::make_shared<TrainFlags>();
  command->add_option("CONFIG", flags->config, "a file of JSON, or a run's folder with --resume")
      ->type_name("");
  command
      ->add_option("--example", flags->example,
                   "print a configuration to start from, or, with\n--out, write it with data that "
                   "the program draws:\n" +
                       kinds_text())
      ->type_name("KIND");
  command->add_flag("--check", flags->check, "print data and layers, and train nothing");
  command->add_flag("--resume", flags->resume, "go on with the run, or begin where there is none");
  command->add_option("--out", flags->out, "the run's folder (default: what CONFIG says)")
      ->type_name("DIR");
  command
      ->add_option("--set", flags->sets,
                   "change a field, as in optimizer.lr=0.01;\nmay be repeated")
      ->type_name("FIELD=VALUE")
      ->expected(1)
      ->take_all();
  command->add_option("--epochs", flags->epochs, "the same as --set epochs=N")
      ->type_name("N")
      ->check(whole_number(1, 1'000'000));
  command->add_option("--seed", flags->seed, "the same as --set seed=N")
      ->type_name("N")
      ->check(whole_number(0, std::numeric_limits<int64_t>::max()));
  command
      ->add_option("--device", flags->device, "the same as --set device=D: cpu, opencl, opencl:1")
      ->type_name("D");
  command->add_option("--threads", flags->threads, "threads to use (default: all processors)")
      ->type_name("N")
      ->check(whole_number(1, 4096));
  command->add_flag("--quiet", flags->quiet, "print the last line only");
  command->add_flag("--plain", flags->plain, "print lines, without a progress bar");
  command->add_flag("--dashboard", flags->dashboard,
                    "plots, progress, log and keys on the whole terminal;\n"
                    "lines where the output is none");
  command->callback([flags, &status] { status = train(*flags); });
}

}  // namespace kiln::cli
