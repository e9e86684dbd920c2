#include "kiln/backend/line_map.h"

#include <algorithm>
#include <utility>

namespace kiln {

LineMap::LineMap(int64_t size) : in(size), first(1, 0) {}

void LineMap::begin_output() {
  ++out;
  first.push_back(first.back());
}

void LineMap::put(int64_t at, double by) {
  index.push_back(at);
  weight.push_back(by);
  ++first.back();
}

bool LineMap::picks() const {
  return static_cast<int64_t>(index.size()) == out &&
         std::all_of(weight.begin(), weight.end(), [](double w) { return w == 1.0; }) &&
         std::adjacent_find(first.begin(), first.end()) == first.end();
}

LineMap LineMap::transposed() const {
  LineMap result(out);
  std::vector<std::vector<std::pair<int64_t, double>>> of(static_cast<size_t>(in));
  for (int64_t o = 0; o < out; ++o) {
    for (int64_t k = first[static_cast<size_t>(o)]; k < first[static_cast<size_t>(o) + 1]; ++k) {
      const auto i = static_cast<size_t>(k);
      auto& list = of[static_cast<size_t>(index[i])];
      // What reads an element twice, as at an edge, has one weight.
      if (!list.empty() && list.back().first == o) {
        list.back().second += weight[i];
      } else {
        list.emplace_back(o, weight[i]);
      }
    }
  }
  for (const auto& list : of) {
    result.begin_output();
    for (const auto& [at, by] : list) result.put(at, by);
  }
  return result;
}

DimMaps transposed(const DimMaps& maps) {
  std::vector<DimMap> back;
  for (size_t i = maps->size(); i-- > 0;) {
    back.push_back({(*maps)[i].dim, (*maps)[i].map.transposed()});
  }
  return std::make_shared<const std::vector<DimMap>>(std::move(back));
}

}  // namespace kiln
