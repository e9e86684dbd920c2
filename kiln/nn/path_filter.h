// PathFilter: which parameters are meant: by their paths, by patterns, by ids, by a predicate.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/nn/param_id.h"

namespace kiln::nn {

class Module;

// A text is a glob over the whole path: '*' stands for any characters, dots too, '?' for one, and
// everything else for itself; so a path without them means that path.
//
//   freeze(model, "encoder.*");
//   PathFilter weights = PathFilter("*.weight") && !PathFilter::regex("^head\\.");
class PathFilter {
 public:
  using Predicate = std::function<bool(std::string_view path)>;

  PathFilter();  // everything
  PathFilter(const char* glob) : PathFilter(std::string(glob)) {}
  PathFilter(std::string glob);
  // What any of them matches.
  PathFilter(std::initializer_list<const char*> globs);
  explicit PathFilter(const std::vector<std::string>& globs);
  static PathFilter none();
  // ECMAScript, searched for in the path (use ^ and $ for the whole). Throws ValueError when it is
  // no regular expression.
  static PathFilter regex(const std::string& pattern);
  // `description` stands for it in messages.
  static PathFilter predicate(Predicate predicate, std::string description = "a predicate");
  static PathFilter ids(std::vector<ParamId> ids);
  // The parameters that a module has now, wherever they are met: ids stay the same through copies
  // and records.
  static PathFilter ids_of(const Module& module);

  bool matches(std::string_view path) const { return matches(path, ParamId(0)); }
  bool matches(std::string_view path, ParamId id) const;
  // Whether nothing was asked for.
  bool is_everything() const { return test_ == nullptr; }
  // "'encoder.*'".
  const std::string& description() const { return description_; }

  friend PathFilter operator||(const PathFilter& a, const PathFilter& b);
  friend PathFilter operator&&(const PathFilter& a, const PathFilter& b);
  friend PathFilter operator!(const PathFilter& a);

 private:
  using Test = std::function<bool(std::string_view path, ParamId id)>;
  PathFilter(Test test, std::string description);

  std::shared_ptr<const Test> test_;  // null: everything
  std::string description_;
};

// The names of a module's parameters that the filter matches, in the order of parameters().
// Initializes nothing.
std::vector<std::string> matching_parameters(Module& module, const PathFilter& filter);

// The parameters that match stop, or begin again, to require a gradient. Returns how many there
// were; throws ValueError when the filter matches none.
int64_t freeze(Module& module, const PathFilter& filter = {});
int64_t unfreeze(Module& module, const PathFilter& filter = {});

}  // namespace kiln::nn
