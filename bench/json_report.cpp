#include "bench/json_report.h"

#include <nlohmann/json.hpp>

namespace kiln::bench {

std::string json_report(const std::vector<Result>& results, const Peaks& peaks,
                        const std::string& peer) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const Result& result : results) {
    if (!result.is_measured()) continue;
    Json row;
    row["row"] = result.row.name;
    row["kiln_s"] = result.kiln.median;
    row["peer_s"] = result.peer ? Json(result.peer->median) : Json();
    row["ratio"] = result.ratio ? Json(result.ratio->median) : Json();
    row["kiln_min_s"] = result.kiln.minimum;
    row["kiln_quartiles_s"] = {result.kiln.quartile1, result.kiln.quartile3};
    if (result.peer) {
      row["peer"] = peer;
      row["peer_min_s"] = result.peer->minimum;
      row["peer_quartiles_s"] = {result.peer->quartile1, result.peer->quartile3};
      row["ratio_quartiles"] = {result.ratio->quartile1, result.ratio->quartile3};
    }
    for (const FloorResult& floor : result.floors) {
      row["floors"][floor.name] = {{"s", floor.seconds.median}, {"ratio", floor.ratio}};
    }
    row["pairs"] = result.pairs;
    row["threads"] = peaks.threads;
    if (result.flops > 0) row["flops_per_s"] = result.flops;
    if (result.bytes > 0) row["bytes_per_s"] = result.bytes;
    if (result.peak_fraction > 0) row["peak_fraction"] = result.peak_fraction;
    if (!result.problem.empty()) row["problem"] = result.problem;
    list.push_back(std::move(row));
  }
  return list.dump(2) + "\n";
}

}  // namespace kiln::bench
