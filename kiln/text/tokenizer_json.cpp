#include "kiln/text/tokenizer_json.h"

#include <filesystem>

#include "kiln/io/input_file.h"

namespace kiln::text {

namespace {

constexpr uint64_t kMostBytes = uint64_t{256} << 20;
constexpr int64_t kMostIds = int64_t{1} << 31;

}  // namespace

[[noreturn]] void wrong(const std::string& subject, std::string_view what, const Json* got) {
  throw_error<IoError>(subject, ": ", what, "; got ",
                       got == nullptr ? std::string("nothing") : got->describe());
}

const std::string& text_member(const Json* values, const char* name, const std::string& subject) {
  return member<std::string>(values, name, "a string", subject);
}

bool flag(const Json& values, const char* name, bool otherwise) {
  const Json* value = values.find(name);
  const bool* found = value == nullptr ? nullptr : value->as<bool>();
  return found == nullptr ? otherwise : *found;
}

bool is_there(const Json* values) { return values != nullptr && !values->is_null(); }

int64_t id_of(const Json* value, const std::string& subject) {
  const auto* id = value == nullptr ? nullptr : value->as<int64_t>();
  if (id == nullptr || *id < 0 || *id >= kMostIds) {
    wrong(subject, "an id must be an integer from 0 to 2^31", value);
  }
  return *id;
}

std::string read_tokenizer_file(const char* who, const std::string& path) {
  const std::string name = std::filesystem::is_directory(path) ? path + "/tokenizer.json" : path;
  return io::InputFile(who, name).read_whole(kMostBytes);
}

Json decode_tokenizer_file(std::string_view json, const std::string& subject) {
  Json values;
  try {
    values = decode_json(json);
  } catch (const ValueError& error) {
    throw_error<IoError>(subject, ": ", error.what());
  }
  const Json* model = values.find("model");
  if (model == nullptr || model->as<Json::Object>() == nullptr) {
    wrong(subject, "'model' must be an object", model);
  }
  return values;
}

}  // namespace kiln::text
