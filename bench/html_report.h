// The results as one page with everything in it.
#pragma once

#include <string>
#include <vector>

#include "bench/runner.h"

namespace kiln::bench {

// `peer` is empty when Kiln ran alone; the page then has no bars for it.
std::string html_report(const std::vector<Result>& results, const Peaks& peaks,
                        const std::string& peer);

}  // namespace kiln::bench
