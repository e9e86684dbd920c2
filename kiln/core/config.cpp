#include "kiln/core/config.h"

#include <algorithm>

#include "kiln/core/utf8.h"

namespace kiln::detail {

void ConfigSource::fail(const std::string& what, const std::string& got,
                        const std::string& expected) const {
  const std::string message =
      concat(config_, ": ", file_.empty() ? "" : "'" + file_ + "': ",
             path_.empty() ? std::string("the configuration") : "field '" + path_ + "'", " ", what,
             "; got ", got, "; expected ", expected);
  if (file_.empty()) throw ValueError(message);
  throw IoError(message);
}

void ConfigSource::wrong_type(const Json& got, const std::string& expected) const {
  fail("has a wrong type or value", got.describe(), expected);
}

void ConfigSource::unknown(const std::string& name, const std::string& known) const {
  fail("has an unknown field", "'" + printable(name) + "'",
       known.empty() ? "none" : "one of " + known);
}

ConfigSource::Scope::Scope(ConfigSource& source, std::string_view name)
    : source_(source), length_(source.path_.size()) {
  if (!source_.path_.empty()) source_.path_ += '.';
  source_.path_ += name;
}

ConfigSource::Scope::~Scope() { source_.path_.resize(length_); }

void throw_unset(std::string_view config, const char* owner, const std::string& unset) {
  for (const std::string_view end : {"Config", "Options"}) {
    if (config.ends_with(end) && config.size() > end.size()) config.remove_suffix(end.size());
  }
  std::string wanted = "." + unset;
  bool several = false;
  for (size_t at = 0; (at = wanted.find(", ", at)) != std::string::npos; at += 3) {
    wanted.insert(at + 2, ".");
    several = true;
  }
  throw_error<ValueError>(owner != nullptr ? std::string_view(owner) : config, ": ", unset,
                          several ? " were" : " was", " not set; give ", wanted);
}

std::string_view next_config_name(std::string_view& arguments) {
  // One argument: up to a comma that stands in no parentheses and in no string.
  size_t end = 0;
  int depth = 0;
  bool quoted = false;
  for (; end < arguments.size(); ++end) {
    const char c = arguments[end];
    if (quoted) {
      if (c == '\\') ++end;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '(') {
      ++depth;
    } else if (c == ')') {
      --depth;
    } else if (c == ',' && depth == 0) {
      break;
    }
  }
  std::string_view name = arguments.substr(0, std::min(end, arguments.size()));
  arguments.remove_prefix(std::min(end + 1, arguments.size()));
  if (const size_t open = name.find('('); open != std::string_view::npos) {
    name.remove_prefix(open + 1);
    name = name.substr(0, name.find(','));
  }
  if (const size_t arrow = name.rfind('>'); arrow != std::string_view::npos) {
    name.remove_prefix(arrow + 1);  // this->field
  }
  const char* blanks = " \t\n";
  const size_t first = name.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return name.substr(first, name.find_last_not_of(blanks) - first + 1);
}

std::string config_help(const char* name, const std::vector<ConfigHelpLine>& lines) {
  size_t widths[3] = {};
  for (const ConfigHelpLine& line : lines) {
    widths[0] = std::max(widths[0], line.name.size());
    widths[1] = std::max(widths[1], line.type.size());
    widths[2] = std::max(widths[2], line.value.size());
  }
  std::string out = concat(name, "\n");
  for (const ConfigHelpLine& line : lines) {
    const std::string* cells[] = {&line.name, &line.type, &line.value};
    std::string text = "  ";
    for (int i = 0; i < 3; ++i) {
      text += *cells[i] + std::string(widths[i] - cells[i]->size() + 2, ' ');
    }
    text += line.text;
    out += text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

Json parse_config(const ConfigSource& source, std::string_view text, Budget* budget) {
  try {
    return decode_json(text, JsonFormat::text, budget);
  } catch (const ValueError& error) {
    source.fail("is no JSON", printable(error.what(), 200), "a JSON object");
  }
}

}  // namespace kiln::detail
