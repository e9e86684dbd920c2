#include "cli/model_bench.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/runnable.h"
#include "kiln/core/error.h"
#include "kiln/core/parallel.h"
#include "kiln/core/utf8.h"
#include "kiln/kiln.h"

namespace kiln::cli {

namespace {

struct BenchFlags {
  std::string model;
  std::vector<std::string> sizes;
  int64_t calls = 0;  // 0: as many as fit into a second, and five at least
  int threads = 0;    // 0: as many as Kiln takes
  bool explain = false;
  bool json = false;
};

struct Times {
  double median = 0, least = 0, slow = 0;  // seconds; slow: nine in ten are faster
  int64_t calls = 0;
};
Times measured(const GraphModel& model, const TensorList& inputs, int64_t wanted) {
  using Clock = std::chrono::steady_clock;
  const auto seconds = [](Clock::duration d) { return std::chrono::duration<double>(d).count(); };
  static_cast<void>(model(inputs));  // the first one makes what the next ones use
  static_cast<void>(model(inputs));
  std::vector<double> all;
  double sum = 0;
  while (wanted > 0 ? static_cast<int64_t>(all.size()) < wanted
                    : all.size() < 5 || (sum < 1.0 && all.size() < 100'000)) {
    const auto begin = Clock::now();
    static_cast<void>(model(inputs));
    all.push_back(seconds(Clock::now() - begin));
    sum += all.back();
  }
  std::ranges::sort(all);
  return {all[all.size() / 2], all[0], all[all.size() * 9 / 10], static_cast<int64_t>(all.size())};
}

std::string in_units(double seconds) {
  char text[32];
  const bool micro = seconds < 1e-3;
  std::snprintf(text, sizeof text, "%.4g %s", seconds * (micro ? 1e6 : 1e3), micro ? "us" : "ms");
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

int run(const BenchFlags& flags) {
  const std::unique_ptr<Runnable> file = open_runnable("bench", flags.model);
  if (flags.threads > 0) set_num_threads(flags.threads);
  const TensorList inputs = file->examples(sizes_of(*file, flags.sizes));
  const GraphModel model = file->graph(inputs, false);
  const Times times = measured(model, inputs, flags.calls);
  int64_t values = 0;
  for (const Tensor& x : inputs) values += x.numel();
  const double rate = static_cast<double>(values) / times.median;
  if (flags.json) {
    nlohmann::ordered_json out;
    for (size_t i = 0; i < inputs.size(); ++i) {
      out["inputs"][printable(model.input_names()[i], 200)] = inputs[i].shape().to_vector();
    }
    out["threads"] = num_threads();
    out["calls"] = times.calls;
    out["median_seconds"] = times.median;
    out["least_seconds"] = times.least;
    out["ninth_decile_seconds"] = times.slow;
    out["values_per_second"] = rate;
    if (flags.explain) out["explain"] = lines_of(model.explain());
    std::printf("%s\n", out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    return 0;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::printf("%-10s %s %s %s\n", i == 0 ? "inputs:" : "",
                printable(model.input_names()[i], 60).c_str(), to_string(inputs[i].dtype()).c_str(),
                to_string(inputs[i].shape()).c_str());
  }
  std::printf("%-10s %d\n", "threads:", num_threads());
  std::printf("%-10s %lld\n", "calls:", static_cast<long long>(times.calls));
  std::printf("%-10s %s median, %s least, nine in ten below %s\n",
              "time:", in_units(times.median).c_str(), in_units(times.least).c_str(),
              in_units(times.slow).c_str());
  std::printf("%-10s %.4g a second, %.4g values of inputs a second\n", "speed:", 1 / times.median,
              rate);
  if (!flags.explain) return 0;
  std::printf("\n%s", model.explain().c_str());
  return 0;
}

}  // namespace

void add_bench(CLI::App& app, int& status) {
  CLI::App* bench = app.add_subcommand("bench", "Measures how long a model takes.");
  bench->group("Commands");
  bench->require_subcommand(1);
  CLI::App* command = bench->add_subcommand(
      "model",
      "Runs a model file (a graph of Kiln, ONNX or a program of torch.export) again and again on\n"
      "numbers of no meaning (normal ones; integers are 0), and prints the median time of a call.\n"
      "ONNX models and programs run as the graph that they are captured as.");
  auto flags = std::make_shared<BenchFlags>();
  command->add_option("MODEL", flags->model, "model file")->required()->type_name("");
  command
      ->add_option("--size", flags->sizes,
                   "size of a free dim; may be repeated\n(default: that of the capture; 1 of ONNX, "
                   "2 of a\nprogram)")
      ->type_name("NAME=SIZE")
      ->expected(1)
      ->take_all();
  command
      ->add_option("--calls", flags->calls,
                   "how many are measured\n(default: for a second, and at least 5)")
      ->check(CLI::Range(1, 100'000'000))
      ->type_name("N");
  command->add_option("--threads", flags->threads, "threads to compute on (default: Kiln's)")
      ->check(CLI::Range(1, 4096))
      ->type_name("N");
  command->add_flag("--explain", flags->explain,
                    "also what was fused and folded, and what\neach kind of row takes");
  command->add_flag("--json", flags->json, "print JSON");
  command->callback([flags, &status] { status = run(*flags); });
}

}  // namespace kiln::cli
