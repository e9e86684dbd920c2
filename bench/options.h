// The command line.
#pragma once

#include <optional>
#include <string>

namespace kiln::bench {

struct Options {
  std::string filter;  // a regular expression; empty: every row
  int threads = 0;     // 0: as many as Kiln uses by itself
  std::string json;    // path; empty: none
  std::string html;    // path; empty: none
  std::string peer;    // path of the module; empty: no peer
  std::string python;  // with PyTorch, for its compiled halves; empty: none
  bool all = false;
  bool quick = false;
  bool list = false;
  bool sweeps = false;
  bool scaling = false;
  bool footprint = false;
  bool first_result = false;
};

// The options, or the status to exit with at once: --help was asked for, or the line is wrong and
// that has been said.
struct ParsedOptions {
  std::optional<Options> options;
  int exit_status = 0;
};
ParsedOptions parse_options(int argc, char** argv);

}  // namespace kiln::bench
