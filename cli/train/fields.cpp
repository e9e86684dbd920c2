#include "cli/train/fields.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "cli/suggest.h"
#include "kiln/core/error.h"
#include "kiln/core/utf8.h"

namespace kiln::cli {

namespace {

std::string listed(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

// Names that other programs have for the same.
std::string meant(const std::string& name, const std::vector<std::string>& legal) {
  static const std::vector<std::pair<std::string, std::string>> others{
      {"learning_rate", "lr"},    {"num_epochs", "epochs"},   {"max_epochs", "epochs"},
      {"type", "name"},           {"type", "kind"},           {"dtype", "precision"},
      {"num_workers", "workers"}, {"scheduler", "schedule"},  {"augment", "transforms"},
      {"dataset", "data"},        {"grad_clip", "clip_norm"}, {"output", "out"}};
  for (const auto& [other, own] : others) {
    if (other == name && std::find(legal.begin(), legal.end(), own) != legal.end()) {
      return "; did you mean '" + own + "'?";
    }
  }
  return did_you_mean(name, legal);
}

// What stands in the file, short enough for a line.
std::string shown(const Json& json) {
  const std::string text = encode_json(json, JsonFormat::text);
  return printable(text, 60);
}

std::string range_text(const char* what, int64_t low, int64_t high) {
  if (high != Fields::kAnyWhole) return concat(what, " from ", low, " to ", high);
  if (low == std::numeric_limits<int64_t>::min()) return what;
  return concat(what, ", ", low, " or more");
}

std::string range_text(double low, double high, bool open) {
  const bool below = std::isfinite(low), above = std::isfinite(high);
  if (below && above) return concat("a number ", open ? "above " : "from ", low, " to ", high);
  if (below) return concat("a number", open ? " above " : ", ", low, open ? "" : " or more");
  return "a number";
}

std::optional<double> number_of(const Json& json) {
  if (const double* real = json.as<double>()) return *real;
  if (const int64_t* whole = json.as<int64_t>()) return static_cast<double>(*whole);
  return std::nullopt;
}

template <class T>
Json json_list(const std::vector<T>& items) {
  Json out = Json::Array();
  for (const T& item : items) out.add(Json(item));
  return out;
}

}  // namespace

Fields::Fields(std::string file, Json json, std::string path)
    : file_(std::move(file)), json_(std::move(json)), path_(std::move(path)) {
  if (json_.as<Json::Object>() == nullptr) {
    throw UsageError(concat(file_, path_.empty() ? "" : ": " + path_,
                            ": expected an object, {\"field\": value, ..}; got ", shown(json_)));
  }
}

std::string Fields::full(const std::string& name) const {
  return path_.empty() ? name : name.empty() ? path_ : path_ + "." + name;
}

void Fields::fail(const std::string& name, const std::string& what) const {
  throw UsageError(concat(file_, ": ", full(name), ": ", what));
}

void Fields::wrong(const std::string& name, const Json& got, const std::string& expected) const {
  fail(name, concat("expected ", expected, "; got ", shown(got)));
}

const Json* Fields::find(const char* name) {
  known_.emplace_back(name);
  return json_.find(name);
}

const Json* Fields::need(const char* name, bool has_preset) {
  const Json* found = find(name);
  if (found != nullptr || has_preset) return found;
  // A field that is near it and that nobody knows was probably meant.
  for (const auto& [other, value] : *json_.as<Json::Object>()) {
    if (nearest(other, {name}) == name &&
        std::find(known_.begin(), known_.end(), other) == known_.end()) {
      fail(printable(other), concat("no such field; did you mean '", name, "'?"));
    }
  }
  fail(name, "is required, and missing");
}

void Fields::keep(const char* name, Json value) { read_.add(name, std::move(value)); }

int64_t Fields::whole(const char* name, std::optional<int64_t> preset, int64_t low, int64_t high) {
  const Json* found = need(name, preset.has_value());
  if (found != nullptr) {
    const int64_t* value = found->as<int64_t>();
    if (value == nullptr || *value < low || *value > high) {
      wrong(name, *found, range_text("a whole number", low, high));
    }
    preset = *value;
  }
  keep(name, *preset);
  return *preset;
}

double Fields::real(const char* name, std::optional<double> preset, double low, double high,
                    bool open) {
  const Json* found = need(name, preset.has_value());
  if (found != nullptr) {
    const std::optional<double> value = number_of(*found);
    if (!value || !std::isfinite(*value) || *value < low || *value > high ||
        (open && *value == low)) {
      wrong(name, *found, range_text(low, high, open));
    }
    preset = value;
  }
  keep(name, *preset);
  return *preset;
}

bool Fields::flag(const char* name, bool preset) {
  if (const Json* found = find(name)) {
    const bool* value = found->as<bool>();
    if (value == nullptr) wrong(name, *found, "true or false");
    preset = *value;
  }
  keep(name, preset);
  return preset;
}

std::string Fields::text(const char* name, std::optional<std::string> preset) {
  if (const Json* found = need(name, preset.has_value())) {
    const auto* value = found->as<std::string>();
    if (value == nullptr) wrong(name, *found, "a text");
    preset = *value;
  }
  keep(name, *preset);
  return *preset;
}

std::string Fields::word(const char* name, std::optional<std::string> preset,
                         const std::vector<std::string>& legal) {
  if (const Json* found = need(name, preset.has_value())) {
    const auto* value = found->as<std::string>();
    if (value == nullptr) wrong(name, *found, "one of " + listed(legal));
    if (std::find(legal.begin(), legal.end(), *value) == legal.end()) {
      fail(name, concat("there is no '", printable(*value, 60), "'", did_you_mean(*value, legal),
                        " (legal: ", listed(legal), ")"));
    }
    preset = *value;
  }
  keep(name, *preset);
  return *preset;
}

std::vector<std::string> Fields::texts(const char* name, std::vector<std::string> preset) {
  if (const Json* found = find(name)) {
    const auto* items = found->as<Json::Array>();
    if (items == nullptr) wrong(name, *found, "a list of texts");
    preset.clear();
    for (const Json& item : *items) {
      const auto* value = item.as<std::string>();
      if (value == nullptr) wrong(name, *found, "a list of texts");
      preset.push_back(*value);
    }
  }
  keep(name, json_list(preset));
  return preset;
}

std::vector<std::string> Fields::words(const char* name, std::vector<std::string> preset,
                                       const std::vector<std::string>& legal) {
  std::vector<std::string> out = texts(name, std::move(preset));
  for (size_t i = 0; i < out.size(); ++i) {
    if (std::find(legal.begin(), legal.end(), out[i]) == legal.end()) {
      fail(name, concat("there is no '", printable(out[i], 60), "'", did_you_mean(out[i], legal),
                        " (legal: ", listed(legal), ")"));
    }
    if (std::find(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(i), out[i]) !=
        out.begin() + static_cast<std::ptrdiff_t>(i)) {
      fail(name, concat("'", out[i], "' stands there twice"));
    }
  }
  return out;
}

std::vector<int64_t> Fields::wholes(const char* name, std::vector<int64_t> preset, int64_t low,
                                    int64_t high) {
  if (const Json* found = find(name)) {
    const auto* items = found->as<Json::Array>();
    const std::string expected = "a list; each " + range_text("a whole number", low, high);
    if (items == nullptr) wrong(name, *found, expected);
    preset.clear();
    for (const Json& item : *items) {
      const auto* value = item.as<int64_t>();
      if (value == nullptr || *value < low || *value > high) wrong(name, *found, expected);
      preset.push_back(*value);
    }
  }
  keep(name, json_list(preset));
  return preset;
}

std::vector<double> Fields::reals(const char* name, std::vector<double> preset, size_t count) {
  if (const Json* found = find(name)) {
    const std::string expected =
        count == 0 ? "a list of numbers" : concat("a list of ", count, " numbers");
    const auto* items = found->as<Json::Array>();
    if (items == nullptr || (count != 0 && items->size() != count)) wrong(name, *found, expected);
    preset.clear();
    for (const Json& item : *items) {
      const std::optional<double> value = number_of(item);
      if (!value || !std::isfinite(*value)) wrong(name, *found, expected);
      preset.push_back(*value);
    }
  }
  keep(name, json_list(preset));
  return preset;
}

std::optional<std::pair<int64_t, int64_t>> Fields::sides(const char* name, int64_t low,
                                                         int64_t high) {
  const Json* found = json_.find(name);
  if (found == nullptr || found->is_null()) {
    known_.emplace_back(name);
    return std::nullopt;
  }
  if (found->as<int64_t>() != nullptr) {
    const int64_t side = whole(name, std::nullopt, low, high);
    return std::pair(side, side);
  }
  const std::vector<int64_t> both = wholes(name, {}, low, high);
  if (both.size() != 2) wrong(name, *found, "a number, or [height, width]");
  return std::pair(both[0], both[1]);
}

std::optional<int64_t> Fields::maybe_whole(const char* name, int64_t low, int64_t high) {
  const Json* found = json_.find(name);
  if (found != nullptr && !found->is_null()) return whole(name, std::nullopt, low, high);
  known_.emplace_back(name);
  return std::nullopt;
}

std::optional<double> Fields::maybe_real(const char* name, double low, double high, bool open) {
  const Json* found = json_.find(name);
  if (found != nullptr && !found->is_null()) return real(name, std::nullopt, low, high, open);
  known_.emplace_back(name);
  return std::nullopt;
}

std::string Fields::path(const char* name, const std::string& folder, bool required) {
  const Json* found = need(name, !required);
  if (found == nullptr) return "";
  const auto* value = found->as<std::string>();
  if (value == nullptr || value->empty()) wrong(name, *found, "a path");
  std::string out =
      std::filesystem::absolute(std::filesystem::path(folder) / *value).lexically_normal().string();
  keep(name, out);
  return out;
}

Fields Fields::object(const char* name) {
  const Json* found = find(name);
  if (found == nullptr) return {file_, Json::Object(), full(name)};
  if (const auto* word = found->as<std::string>()) {
    Json named = Json::Object();
    named.add("name", *word);
    return {file_, std::move(named), full(name)};
  }
  return {file_, *found, full(name)};
}

void Fields::check() const {
  for (const auto& [name, value] : *json_.as<Json::Object>()) {
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    std::vector<std::string> legal = known_;
    std::sort(legal.begin(), legal.end());
    legal.erase(std::unique(legal.begin(), legal.end()), legal.end());
    const std::string where = path_.empty() ? "" : concat(" of '", path_, "'");
    fail(printable(name, 60),
         concat("no such field", where, meant(name, legal), " (",
                legal.empty() ? "it takes none" : "legal: " + listed(legal), ")"));
  }
}

Json Fields::finish() {
  check();
  return read_;
}

}  // namespace kiln::cli
