#include "bench/options.h"

#include <cstdio>

#include <CLI/CLI.hpp>

#include "kiln/core/parallel.h"

namespace kiln::bench {

ParsedOptions parse_options(int argc, char** argv) {
  Options options;
#ifdef KILN_BENCH_PEER_PATH
  options.peer = KILN_BENCH_PEER_PATH;
#endif
  bool no_peer = false;
  CLI::App app("Measures Kiln, and beside it PyTorch where the peer module was built.",
               "kiln_bench");
  app.add_option("--filter", options.filter, "only rows whose name contains a match")
      ->type_name("REGEX");
  app.add_flag("--all", options.all, "also the rows of the second group");
  app.add_flag("--quick", options.quick, "short and rough, to see that everything works");
  app.add_option("--threads", options.threads, "threads for both sides (default: every core)")
      ->type_name("N")
      ->check(CLI::Range(1, max_num_threads()));
  app.add_option("--json", options.json, "write the results there")->type_name("FILE");
  app.add_option("--html", options.html, "write them as a page with bars")->type_name("FILE");
  app.add_option("--peer", options.peer, "the peer module to load")->type_name("PATH");
  app.add_flag("--no-peer", no_peer, "run Kiln alone");
#ifdef KILN_BENCH_PEER_PYTHON
  app.add_flag_callback(
      "--compile", [&options] { options.python = KILN_BENCH_PEER_PYTHON; },
      "beside the models also torch.compile, which takes a minute each to compile");
#endif
  app.add_flag("--list", options.list, "print the rows and what they are, and run nothing");
  app.add_flag("--sweeps", options.sweeps,
               "what an element, an example, a token, a layer costs as sizes grow; no rows");
  app.add_flag("--scaling", options.scaling, "rows that compute, on one thread and on all");
  app.add_flag("--footprint", options.footprint,
               "the library's size, the way to the first result, peaks of memory; no rows");
  app.add_flag("--first-result", options.first_result)->group("");  // what --footprint starts
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked_for_help) {
    return {{}, app.exit(asked_for_help)};
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "kiln_bench: %s (see --help)\n", error.what());
    return {{}, 2};
  }
  if (no_peer) options.peer.clear();
  return {options, 0};
}

}  // namespace kiln::bench
