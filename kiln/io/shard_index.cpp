// The index of a sharded model.
#include <unordered_set>

#include <nlohmann/json.hpp>

#include "kiln/core/error.h"
#include "kiln/io/sharded.h"

namespace kiln::io::detail {

namespace {

[[noreturn]] void malformed_index(const std::string& path, const std::string& what,
                                  const std::string& got, const std::string& expected) {
  throw_error<IoError>("load_model: '", path, "' is malformed: ", what, "; got ", got,
                       "; expected ", expected);
}

// Takes the events of the JSON parser: {"metadata": {...}, "weight_map": {"name": "file"}}. Other
// values are passed over, so that memory stays proportional to the names whatever nests or repeats.
class IndexHandler {
 public:
  using Json = nlohmann::json;

  IndexHandler(const std::string& path, ShardIndex& out) : path_(path), out_(out) {}

  bool null() { return plain("null"); }
  bool boolean(bool value) { return plain(value ? "true" : "false"); }
  bool number_integer(Json::number_integer_t value) { return plain(std::to_string(value)); }
  bool number_unsigned(Json::number_unsigned_t value) { return plain(std::to_string(value)); }
  bool number_float(Json::number_float_t, const std::string& text) { return plain(text); }
  bool binary(Json::binary_t&) { return true; }
  bool string(std::string& value) {
    if (!in_map()) return plain(value);
    add_tensor(value);
    return true;
  }

  bool start_object(size_t) { return enter(); }
  bool end_object() { return leave(); }
  bool start_array(size_t) {
    if (depth_ == 1 && part_ == "weight_map") plain("a list");
    return enter();
  }
  bool end_array() { return leave(); }

  bool key(std::string& value) {
    key_ = std::move(value);
    if (depth_ == 1) {
      part_ = key_;
      if (!parts_.insert(part_).second) {
        malformed_index(path_, "a part appears twice", "'" + printable(part_) + "'",
                        "distinct parts");
      }
    }
    return true;
  }

  bool parse_error(size_t position, const std::string&, const Json::exception&) {
    malformed_index(path_, "it is no valid JSON", concat("an error at byte ", position),
                    "an index of shards");
  }

  bool has_map() const { return parts_.contains("weight_map"); }

 private:
  bool in_map() const { return depth_ == 2 && part_ == "weight_map"; }

  bool enter() {
    if (in_map()) plain("a list or an object");
    ++depth_;
    return true;
  }
  bool leave() {
    --depth_;
    return true;
  }

  bool plain(const std::string& text) {
    if (in_map() || (depth_ == 1 && part_ == "weight_map")) {
      malformed_index(path_, "weight_map is no list of names and files", printable(text),
                      "\"name\": \"file\"");
    }
    if (depth_ == 2 && part_ == "metadata") out_.metadata[key_] = text;
    return true;
  }

  void add_tensor(const std::string& file) {
    // No file system has longer names than 255 bytes.
    const bool plain_name = !file.empty() && file.size() <= 255 && file != "." && file != ".." &&
                            file.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
    if (!plain_name) {
      malformed_index(path_, concat("tensor '", printable(key_), "' lies outside the folder"),
                      "'" + printable(file) + "'", "the name of a file beside the index");
    }
    if (key_.empty() || !names_.insert(key_).second) {
      malformed_index(path_, "a tensor appears twice or has no name", "'" + printable(key_) + "'",
                      "distinct names");
    }
    out_.weight_map.emplace_back(key_, file);
  }

  const std::string& path_;
  ShardIndex& out_;
  int depth_ = 0;
  std::string part_;  // the member of the outermost object
  std::string key_;
  std::unordered_set<std::string> parts_;
  std::unordered_set<std::string> names_;
};

}  // namespace

ShardIndex parse_shard_index(const std::string& path, std::string_view json) {
  // The JSON parser would take a zero byte for the end and ignore what follows.
  if (json.find('\0') != std::string_view::npos) {
    malformed_index(path, "it is no valid JSON", "a zero byte", "an index of shards");
  }
  ShardIndex out;
  IndexHandler handler(path, out);
  nlohmann::json::sax_parse(json.begin(), json.end(), &handler);
  if (!handler.has_map() || out.weight_map.empty()) {
    malformed_index(path, "it has no weight_map", "JSON without one", "an index of shards");
  }
  return out;
}

}  // namespace kiln::io::detail
