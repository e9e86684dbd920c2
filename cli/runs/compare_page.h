// The page that `kiln runs compare` writes.
#pragma once

#include <string>
#include <vector>

#include "cli/runs/run_record.h"

namespace kiln::cli {

// One HTML file that loads nothing from elsewhere: a table of the runs, their curves together, the
// fields of their configurations that differ.
std::string compare_page(const std::vector<RunRecord>& runs);
// The fields that not all runs have alike: the path, and each run's value ("-" where it has none).
std::vector<std::pair<std::string, std::vector<std::string>>> differing_fields(
    const std::vector<RunRecord>& runs);

}  // namespace kiln::cli
