#include "kiln/nn/path_filter.h"

#include <algorithm>

#include "kiln/core/error.h"
#include "kiln/nn/module.h"
#include "kiln/nn/regex.h"

namespace kiln::nn {

namespace {

// Iterative, with one way back: to the last star.
bool glob_matches(std::string_view glob, std::string_view text) {
  size_t g = 0;
  size_t t = 0;
  size_t star = std::string_view::npos;
  size_t resume = 0;
  while (t < text.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      resume = t;
    } else if (g < glob.size() && (glob[g] == '?' || glob[g] == text[t])) {
      ++g;
      ++t;
    } else if (star != std::string_view::npos) {
      g = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (g < glob.size() && glob[g] == '*') ++g;
  return g == glob.size();
}

std::vector<std::string> strings(std::initializer_list<const char*> texts) {
  return {texts.begin(), texts.end()};
}

}  // namespace

PathFilter::PathFilter() : description_("everything") {}

PathFilter::PathFilter(Test test, std::string description)
    : test_(std::make_shared<const Test>(std::move(test))), description_(std::move(description)) {}

PathFilter::PathFilter(std::string glob) : PathFilter(std::vector<std::string>{std::move(glob)}) {}

PathFilter::PathFilter(std::initializer_list<const char*> globs) : PathFilter(strings(globs)) {}

PathFilter::PathFilter(const std::vector<std::string>& globs)
    : PathFilter(Test([globs](std::string_view path, ParamId) {
                   return std::any_of(globs.begin(), globs.end(), [path](const std::string& glob) {
                     return glob_matches(glob, path);
                   });
                 }),
                 "") {
  for (const std::string& glob : globs) {
    description_ += (description_.empty() ? "'" : " or '") + glob + "'";
  }
}

PathFilter PathFilter::none() {
  return {Test([](std::string_view, ParamId) { return false; }), "nothing"};
}

PathFilter PathFilter::regex(const std::string& pattern) {
  auto compiled = std::make_shared<const detail::Regex>("PathFilter", pattern);
  return {Test([compiled](std::string_view path, ParamId) { return compiled->found_in(path); }),
          "the expression '" + pattern + "'"};
}

PathFilter PathFilter::predicate(Predicate predicate, std::string description) {
  return {Test([predicate = std::move(predicate)](std::string_view path, ParamId) {
            return predicate(path);
          }),
          std::move(description)};
}

PathFilter PathFilter::ids(std::vector<ParamId> ids) {
  std::sort(ids.begin(), ids.end());
  const size_t count = ids.size();
  return {Test([ids = std::move(ids)](std::string_view, ParamId id) {
            return id != ParamId(0) && std::binary_search(ids.begin(), ids.end(), id);
          }),
          concat(count, " ids")};
}

PathFilter PathFilter::ids_of(const Module& module) {
  std::vector<ParamId> all;
  const_cast<Module&>(module).for_each_parameter(
      [&all](const std::string&, Param<Tensor>& param) { all.push_back(param.id()); });
  return ids(std::move(all));
}

bool PathFilter::matches(std::string_view path, ParamId id) const {
  return test_ == nullptr || (*test_)(path, id);
}

PathFilter operator||(const PathFilter& a, const PathFilter& b) {
  return {PathFilter::Test([a, b](std::string_view path, ParamId id) {
            return a.matches(path, id) || b.matches(path, id);
          }),
          a.description() + " or " + b.description()};
}

PathFilter operator&&(const PathFilter& a, const PathFilter& b) {
  return {PathFilter::Test([a, b](std::string_view path, ParamId id) {
            return a.matches(path, id) && b.matches(path, id);
          }),
          a.description() + " and " + b.description()};
}

PathFilter operator!(const PathFilter& a) {
  return {PathFilter::Test([a](std::string_view path, ParamId id) { return !a.matches(path, id); }),
          "not " + a.description()};
}

std::vector<std::string> matching_parameters(Module& module, const PathFilter& filter) {
  std::vector<std::string> out;
  module.for_each_parameter([&](const std::string& path, Param<Tensor>& param) {
    if (filter.matches(path, param.id())) out.push_back(path);
  });
  return out;
}

namespace {

int64_t set_requirement(const char* op, Module& module, const PathFilter& filter, bool value) {
  int64_t count = 0;
  module.for_each_parameter([&](const std::string& path, Param<Tensor>& param) {
    if (!filter.matches(path, param.id())) return;
    param.set_require_grad(value);
    ++count;
  });
  if (count == 0) {
    throw_error<ValueError>(op, ": no parameter of ", module.type_name(), " matches; got ",
                            filter.description(),
                            "; expected paths as named_parameters() has them");
  }
  return count;
}

}  // namespace

int64_t freeze(Module& module, const PathFilter& filter) {
  return set_requirement("freeze", module, filter, false);
}

int64_t unfreeze(Module& module, const PathFilter& filter) {
  return set_requirement("unfreeze", module, filter, true);
}

}  // namespace kiln::nn
