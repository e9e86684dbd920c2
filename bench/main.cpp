// kiln_bench: one table, Kiln beside PyTorch.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <optional>
#include <regex>
#include <stdexcept>

#include "bench/compiled.h"
#include "bench/footprint.h"
#include "bench/html_report.h"
#include "bench/interrupt.h"
#include "bench/json_report.h"
#include "bench/machine.h"
#include "bench/options.h"
#include "bench/peaks.h"
#include "bench/peer.h"
#include "bench/row.h"
#include "bench/runner.h"
#include "bench/scaling.h"
#include "bench/sweep.h"
#include "bench/table.h"
#include "kiln/core/parallel.h"
#include "kiln/io/atomic_file.h"

namespace kiln::bench {
namespace {

// Keeps what has a name that the filter matches.
template <class Named>
void filter(std::vector<Named>& all, const std::string& expression) {
  if (expression.empty()) return;
  std::regex pattern;
  try {
    pattern = std::regex(expression);
  } catch (const std::regex_error&) {
    throw std::runtime_error("--filter: '" + expression + "' is no regular expression");
  }
  std::erase_if(all, [&](const Named& one) { return !std::regex_search(one.name, pattern); });
  if (all.empty()) {
    throw std::runtime_error("--filter: no name matches '" + expression + "' (see --list)");
  }
}

// The rows that the options ask for. A filter looks through both groups.
std::vector<Row> chosen_rows(const Options& options) {
  std::vector<Row> rows = standard_rows();
  if (options.all || options.list || !options.filter.empty()) {
    for (Row& row : extra_rows()) rows.push_back(std::move(row));
  }
  filter(rows, options.filter);
  return rows;
}

std::vector<Sweep> chosen_sweeps(const Options& options) {
  std::vector<Sweep> sweeps = all_sweeps();
  filter(sweeps, options.filter);
  return sweeps;
}

void list_rows(const std::vector<Row>& rows) {
  for (const Row& row : rows) std::printf("%-22s %s\n", row.name.c_str(), row.what.c_str());
}

void list_sweeps(const std::vector<Sweep>& sweeps) {
  for (const Sweep& sweep : sweeps) {
    std::printf("%-22s from %s to %s\n", sweep.name.c_str(), sweep.points.front().size.c_str(),
                sweep.points.back().size.c_str());
  }
}

void warn_of_what_disturbs(const Peer* peer) {
  const double load = load_average();
  if (load > 0.5) {
    std::printf("note: other programs are running (load %.1f); believe nothing to the last digit\n",
                load);
  }
  if (peer != nullptr && openmp_runtimes().size() > 1) {
    std::printf("note: two OpenMP runtimes are loaded, whose threads get in each other's way:");
    for (const std::string& path : openmp_runtimes()) std::printf(" %s", path.c_str());
    std::printf("\n");
  }
}

std::vector<Result> run_rows(const std::vector<Row>& rows, const Table& table, const Peer* peer,
                             const Peaks& peaks, const Effort& effort) {
  table.print_head();
  std::vector<Result> results;
  for (const Row& row : rows) {
    if (interrupted()) break;
    results.push_back(run_row(row, peer, peaks, effort));
    table.print(results.back());
  }
  table.print_foot(results);
  return results;
}

int run(const Options& options) {
  if (options.first_result) return print_first_result();
  if (options.footprint) return print_footprint(options.peer);
  std::vector<Row> rows = options.sweeps ? std::vector<Row>() : chosen_rows(options);
  const std::vector<Sweep> sweeps = options.sweeps ? chosen_sweeps(options) : std::vector<Sweep>();
  if (options.list) {
    list_rows(rows);
    list_sweeps(sweeps);
    return 0;
  }
  if (options.threads > 0) set_num_threads(options.threads);
  // Opened before the minutes of measuring, so that a path that cannot be written is known at once.
  std::optional<io::AtomicFile> json;
  if (!options.json.empty()) json.emplace("--json", options.json);
  std::optional<io::AtomicFile> html;
  if (!options.html.empty()) html.emplace("--html", options.html);
  std::optional<Peer> peer;
  if (!options.peer.empty()) {
    peer.emplace(options.peer);
    peer->set_num_threads(num_threads());
  }
  const Peer* peer_or_null = peer ? &*peer : nullptr;
  const std::string peer_name = peer ? peer->name() : "";

  catch_interrupts();
  warn_of_what_disturbs(peer_or_null);
  const Peaks peaks = measure_peaks(num_threads(), options.quick);
  std::optional<CompiledPeer> compiled;
  if (!options.python.empty()) {
    compiled.emplace(options.python, num_threads());
    for (Row& row : rows) {
      row.floors.push_back({kCompiled, [&, name = row.name] { return compiled->make(name); }});
    }
  }
  const Table table(rows, peer_name, compiled.has_value());
  table.print_peaks(peaks);
  const Effort effort = options.quick ? quick_effort() : full_effort();
  std::vector<Result> results;
  if (options.sweeps) {
    const std::vector<SweepResult> measured = run_sweeps(sweeps, peer_or_null, peaks, effort);
    for (const SweepResult& sweep : measured) {
      results.insert(results.end(), sweep.results.begin(), sweep.results.end());
    }
  } else if (options.scaling) {
    results = run_scaling(rows, peer_or_null, peaks, effort);
  } else {
    results = run_rows(rows, table, peer_or_null, peaks, effort);
  }
  const bool all_well = std::all_of(results.begin(), results.end(),
                                    [](const Result& result) { return result.problem.empty(); });
  if (interrupted()) {
    std::fprintf(stderr, "kiln_bench: interrupted; no file was written\n");
    return 130;
  }
  if (json) {
    json->write(json_report(results, peaks, peer_name));
    json->commit();
  }
  if (html) {
    html->write(html_report(results, peaks, peer_name));
    html->commit();
  }
  return all_well ? 0 : 1;
}

}  // namespace
}  // namespace kiln::bench

int main(int argc, char** argv) {
  const kiln::bench::ParsedOptions parsed = kiln::bench::parse_options(argc, argv);
  if (!parsed.options) return parsed.exit_status;
  try {
    return kiln::bench::run(*parsed.options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kiln_bench: %s\n", error.what());
    return 1;
  }
}
