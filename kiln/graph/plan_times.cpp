#include "kiln/graph/plan_times.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "kiln/graph/fused.h"

namespace kiln::graph {

namespace {

std::string duration(double nanoseconds) {
  const bool micro = nanoseconds < 1e6;
  char text[32];
  std::snprintf(text, sizeof text, "%.3g %s", nanoseconds / (micro ? 1e3 : 1e6),
                micro ? "us" : "ms");
  return text;
}

// Rows of one name are taken together, and so are fused groups that do the same.
std::string label_of(const Node& node) {
  if (node.kind != NodeKind::fused) return node.name;
  std::string out =
      concat("fused: ", node.fused->nodes.size(), " rows on ", node.fused->result_shape());
  for (size_t i = 0; i < node.fused->nodes.size(); ++i) {
    out += (i == 0 ? ": " : ", ") + node.fused->nodes[i].name;
  }
  return out;
}

}  // namespace

void PlanTimes::add(std::span<const int64_t> nanoseconds) {
  const std::lock_guard lock(mutex_);
  ++measured_;
  for (size_t i = 0; i < nanoseconds_.size(); ++i) nanoseconds_[i] += nanoseconds[i];
}

std::vector<std::string> PlanTimes::lines(const Graph& graph) const {
  struct Entry {
    std::string label;
    int64_t count = 0;
    double time = 0.0;
  };
  std::map<std::string, Entry> by_label;
  double all = 0.0;
  int64_t measured = 0;
  {
    const std::lock_guard lock(mutex_);
    if (measured_ == 0) return {};
    measured = measured_;
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const double time = static_cast<double>(nanoseconds_[i]) / static_cast<double>(measured_);
      Entry& entry = by_label[label_of(graph.nodes[i])];
      entry.label = label_of(graph.nodes[i]);
      ++entry.count;
      entry.time += time;
      all += time;
    }
  }
  std::vector<Entry> entries;
  for (auto& [label, entry] : by_label) entries.push_back(std::move(entry));
  std::ranges::stable_sort(entries, std::ranges::greater{}, &Entry::time);
  std::vector<std::string> out{concat(measured, measured == 1 ? " replay" : " replays",
                                      " measured, ", duration(all), " each")};
  const auto line = [&](double time, int64_t count, const std::string& label) {
    char share[16];
    std::snprintf(share, sizeof share, "%5.1f %%", 100.0 * time / std::max(all, 1.0));
    out.push_back(concat(share, "  ", duration(time), "  ", count, " x ", label));
  };
  double rest = 0.0;
  int64_t others = 0;
  for (const Entry& entry : entries) {
    if (entry.time > 0.01 * all) {
      line(entry.time, entry.count, entry.label);
    } else {
      rest += entry.time;
      others += entry.count;
    }
  }
  if (others > 0) line(rest, others, "others");
  return out;
}

}  // namespace kiln::graph
