// kiln_bench: one table, Kiln beside PyTorch.
#include <cstdio>
#include <exception>
#include <optional>
#include <regex>
#include <stdexcept>

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
#include "bench/table.h"
#include "kiln/core/parallel.h"
#include "kiln/io/atomic_file.h"

namespace kiln::bench {
namespace {

// The rows that the options ask for. A filter looks through both groups.
std::vector<Row> chosen_rows(const Options& options) {
  std::vector<Row> rows = standard_rows();
  if (options.all || options.list || !options.filter.empty()) {
    for (Row& row : extra_rows()) rows.push_back(std::move(row));
  }
  if (options.filter.empty()) return rows;
  std::regex pattern;
  try {
    pattern = std::regex(options.filter);
  } catch (const std::regex_error&) {
    throw std::runtime_error("--filter: '" + options.filter + "' is no regular expression");
  }
  std::erase_if(rows, [&](const Row& row) { return !std::regex_search(row.name, pattern); });
  if (rows.empty()) {
    throw std::runtime_error("--filter: no row's name matches '" + options.filter +
                             "' (see --list)");
  }
  return rows;
}

void list_rows(const std::vector<Row>& rows) {
  for (const Row& row : rows) std::printf("%-22s %s\n", row.name.c_str(), row.what.c_str());
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

int run(const Options& options) {
  if (options.first_result) return print_first_result();
  if (options.footprint) return print_footprint(options.peer);
  const std::vector<Row> rows = chosen_rows(options);
  if (options.list) {
    list_rows(rows);
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
  const Table table(rows, peer_name);
  table.print_peaks(peaks);
  table.print_head();
  std::vector<Result> results;
  bool all_well = true;
  for (const Row& row : rows) {
    if (interrupted()) break;
    results.push_back(
        run_row(row, peer_or_null, peaks, options.quick ? quick_effort() : full_effort()));
    table.print(results.back());
    all_well = all_well && results.back().problem.empty();
  }
  table.print_foot(results);
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
