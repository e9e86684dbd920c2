#include "kiln/graph/file/free_sizes.h"

#include <algorithm>

#include "kiln/core/error.h"
#include "kiln/core/utf8.h"

namespace kiln::graph {

namespace {

// What lists of equal items may add up to in one graph.
constexpr int64_t kMostRepeated = int64_t{1} << 22;

std::string sizes_text(std::span<const std::string> names, const Sizes& sizes) {
  std::string out;
  for (size_t i = 0; i < names.size(); ++i) {
    out += concat(i == 0 ? "" : ", ", names[i], " = ", sizes[i]);
  }
  return out;
}

// ---- Several graphs as one

class Unifier {
 public:
  Unifier(std::span<const Sizes> samples, std::span<const std::string> names)
      : samples_(samples), names_(names) {}

  // Values of one place, one for each sample.
  using Places = std::vector<const Json*>;

  Json graph(const Places& all) {
    Json out = Json::Object{};
    for (const auto& [key, first] : *all[0]->as<Json::Object>()) {
      const Places inside = members(all, key);
      out.add(key, key == "nodes" ? nodes(inside) : value(inside));
    }
    return out;
  }

 private:
  [[noreturn]] void differ(const Places& all, size_t k) const {
    throw_error<ValueError>(where_, all[0]->describe(), " at ", sizes_text(names_, samples_[0]),
                            " and ", all[k]->describe(), " at ", sizes_text(names_, samples_[k]),
                            ", which is no expression of the free dims");
  }

  Places members(const Places& all, const std::string& key) const {
    Places out;
    for (size_t k = 0; k < all.size(); ++k) {
      out.push_back(all[k]->find(key));
      if (out.back() == nullptr) differ(all, k);
    }
    return out;
  }

  Json nodes(const Places& all) {
    Json::Array out;
    const auto& first = *all[0]->as<Json::Array>();
    size_t count = first.size();
    for (const Json* list : all) count = std::min(count, list->as<Json::Array>()->size());
    for (size_t n = 0; n < count; ++n) {
      Places node;
      for (const Json* list : all) node.push_back(&(*list->as<Json::Array>())[n]);
      const std::string& row = *node[0]->find("row")->as<std::string>();
      for (size_t k = 1; k < node.size(); ++k) {
        const std::string& other = *node[k]->find("row")->as<std::string>();
        if (other == row) continue;
        throw_error<ValueError>("node ", n, " is ", row, " at ", sizes_text(names_, samples_[0]),
                                " and ", other, " at ", sizes_text(names_, samples_[k]),
                                ": what is computed depends on the sizes");
      }
      where_ = concat("node ", n, " (", row, "): an argument is ");
      out.push_back(value(node));
    }
    for (size_t k = 0; k < all.size(); ++k) {
      if (all[k]->as<Json::Array>()->size() == first.size()) continue;
      throw_error<ValueError>(
          "there are ", first.size(), " nodes at ", sizes_text(names_, samples_[0]), " and ",
          all[k]->as<Json::Array>()->size(), " at ", sizes_text(names_, samples_[k]),
          ": what is computed depends on the sizes");
    }
    where_ = "a size is ";
    return out;
  }

  Json value(const Places& all) {
    const bool same = std::ranges::all_of(all, [&](const Json* v) { return *v == *all[0]; });
    if (same) return *all[0];
    if (all[0]->as<Json::Object>() != nullptr) {
      Json out = Json::Object{};
      for (const auto& [key, first] : *all[0]->as<Json::Object>()) {
        out.add(key, value(members(all, key)));
      }
      return out;
    }
    if (all[0]->as<Json::Array>() != nullptr) return list(all);
    if (all[0]->as<int64_t>() != nullptr) return integer(all);
    return number(all);
  }

  Json list(const Places& all) {
    const auto& first = *all[0]->as<Json::Array>();
    bool one_length = true;
    for (size_t k = 0; k < all.size(); ++k) {
      const auto* items = all[k]->as<Json::Array>();
      if (items == nullptr) differ(all, k);
      one_length = one_length && items->size() == first.size();
    }
    if (one_length) {
      Json::Array out;
      for (size_t i = 0; i < first.size(); ++i) {
        Places item;
        for (const Json* v : all) item.push_back(&(*v->as<Json::Array>())[i]);
        out.push_back(value(item));
      }
      return out;
    }
    // The steps of a recurrence: so many equal numbers.
    Places item;
    std::vector<int64_t> counts;
    for (size_t k = 0; k < all.size(); ++k) {
      const auto& items = *all[k]->as<Json::Array>();
      const bool equal = !items.empty() &&
                         std::ranges::all_of(items, [&](const Json& v) { return v == items[0]; });
      if (!equal) differ(all, k);
      item.push_back(items.data());
      counts.push_back(static_cast<int64_t>(items.size()));
    }
    const auto times = fitted(counts, samples_);
    if (!times) differ(all, 1);
    return Json::Object{{"repeat", value(item)}, {"times", written(*times, false)}};
  }

  Json integer(const Places& all) {
    std::vector<int64_t> values;
    for (size_t k = 0; k < all.size(); ++k) {
      const auto* v = all[k]->as<int64_t>();
      if (v == nullptr) differ(all, k);
      values.push_back(*v);
    }
    const auto found = fitted(values, samples_);
    for (size_t k = 1; !found && k < all.size(); ++k) {
      if (values[k] != values[0]) differ(all, k);
    }
    return written(*found, false);
  }
  Json number(const Places& all) {
    std::vector<double> values;
    for (size_t k = 0; k < all.size(); ++k) {
      const auto* v = all[k]->as<double>();
      if (v == nullptr) differ(all, k);
      values.push_back(*v);
    }
    bool reciprocal = false;
    const auto found = fitted_number(values, samples_, reciprocal);
    for (size_t k = 1; !found && k < all.size(); ++k) {
      if (values[k] != values[0]) differ(all, k);
    }
    Json out = written(*found, true);
    if (reciprocal) out.add("reciprocal", true);
    return out;
  }

  Json written(const SizeExpression& e, bool real) const {
    Json::Array terms;
    for (const SizeExpression::Term& term : e.terms) {
      Json::Array one{Json(term.factor)};
      for (const int s : term.sizes) one.emplace_back(names_[static_cast<size_t>(s)]);
      terms.emplace_back(std::move(one));
    }
    Json out = Json::Object{{"free", Json(std::move(terms))}};
    if (e.over != 1) out.add("over", e.over);
    if (real) out.add("real", true);
    return out;
  }

  std::span<const Sizes> samples_;
  std::span<const std::string> names_;
  std::string where_ = "a size is ";
};

// ---- One graph for given sizes

class Substitution {
 public:
  Substitution(std::span<const std::string> names, const Sizes& sizes)
      : names_(names), sizes_(sizes) {}

  Json of(const Json& json) {
    if (const auto* items = json.as<Json::Array>()) {
      Json::Array out;
      out.reserve(items->size());
      for (const Json& item : *items) out.push_back(of(item));
      return out;
    }
    const auto* members = json.as<Json::Object>();
    if (members == nullptr) return json;
    if (json.find("free") != nullptr) return evaluated(json);
    if (json.find("repeat") != nullptr) return repeated(json);
    Json out = Json::Object{};
    for (const auto& [key, value] : *members) out.add(key, of(value));
    return out;
  }

 private:
  Json evaluated(const Json& json) {
    const auto e = expression_of(json, names_);
    if (!e) throw_error<ValueError>("got an expression that is none of the free sizes");
    const int64_t v = e->at(sizes_);
    const Json* real = json.find("real");
    if (real == nullptr || *real != Json(true)) return v;
    const Json* reciprocal = json.find("reciprocal");
    const bool turned = reciprocal != nullptr && *reciprocal == Json(true);
    return turned ? 1.0 / static_cast<double>(v) : static_cast<double>(v);
  }
  Json repeated(const Json& json) {
    const Json* times = json.find("times");
    const Json count = times == nullptr ? Json() : of(*times);
    const auto* n = count.as<int64_t>();
    if (n == nullptr || *n < 0 || *n > kMostRepeated - repeated_) {
      throw_error<ValueError>("got a list of ", n == nullptr ? 0 : *n,
                              " equal items; expected at most ", kMostRepeated, " in all");
    }
    repeated_ += *n;
    const Json item = of(*json.find("repeat"));
    if (item.as<Json::Array>() != nullptr || item.as<Json::Object>() != nullptr) {
      throw_error<ValueError>("got a list of equal lists; expected numbers");
    }
    return Json::Array(static_cast<size_t>(*n), item);
  }

  std::span<const std::string> names_;
  const Sizes& sizes_;
  int64_t repeated_ = 0;
};

}  // namespace

std::optional<SizeExpression> expression_of(const Json& json, std::span<const std::string> names) {
  const Json* free = json.find("free");
  const auto* terms = free == nullptr ? nullptr : free->as<Json::Array>();
  if (terms == nullptr) return std::nullopt;
  SizeExpression out;
  for (const Json& one : *terms) {
    const auto* parts = one.as<Json::Array>();
    if (parts == nullptr || parts->empty() || parts->size() > 4) return std::nullopt;
    const auto* factor = (*parts)[0].as<int64_t>();
    if (factor == nullptr) return std::nullopt;
    SizeExpression::Term& term = out.terms.emplace_back();
    term.factor = *factor;
    for (size_t i = 1; i < parts->size(); ++i) {
      const auto* name = (*parts)[i].as<std::string>();
      const auto found = name == nullptr ? names.end() : std::ranges::find(names, *name);
      if (found == names.end()) return std::nullopt;
      term.sizes.push_back(static_cast<int>(found - names.begin()));
    }
  }
  if (const Json* over = json.find("over")) {
    const auto* by = over->as<int64_t>();
    if (by == nullptr || *by < 1) return std::nullopt;
    out.over = *by;
  }
  return out;
}

Json unified(std::span<const Json> graphs, std::span<const Sizes> samples,
             std::span<const std::string> names) {
  Unifier::Places all;
  for (const Json& graph : graphs) all.push_back(&graph);
  return Unifier(samples, names).graph(all);
}

Json at_sizes(const Json& graph, std::span<const std::string> names, const Sizes& sizes) {
  return Substitution(names, sizes).of(graph);
}

}  // namespace kiln::graph
