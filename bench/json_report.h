// The results for other programs.
#pragma once

#include <string>
#include <vector>

#include "bench/runner.h"

namespace kiln::bench {

// A list with an object for each measured row: row, kiln_s, peer_s, ratio (null without a peer),
// and further figures.
std::string json_report(const std::vector<Result>& results, const Peaks& peaks,
                        const std::string& peer);

}  // namespace kiln::bench
