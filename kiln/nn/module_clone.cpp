// Module::clone: what a copy constructor cannot do by itself.
#include <algorithm>

#include "kiln/core/error.h"
#include "kiln/nn/module_tree.h"

namespace kiln::nn::detail {
namespace {

// Finds the modules that are held by shared pointers, or replaces those that are still the
// original's.
class SharedParts final : public MemberVisitor {
 public:
  void parameter(std::string_view, Param<Tensor>&) override {}
  void buffer(std::string_view, Buffer&) override {}
  void module(std::string_view, Module& value) override { value.visit_parts(*this); }
  void group(std::string_view, MemberGroup& elements) override { elements.visit_members(*this); }
  void shared_module(std::string_view, SharedModule& value) override {
    const std::shared_ptr<Module> held = value.get();
    if (!replace) {
      found.push_back(held.get());
    } else if (std::find(found.begin(), found.end(), held.get()) != found.end()) {
      value.set(memo.clone(held));
      return;  // its own shared parts are copied already
    }
    held->visit_parts(*this);
  }

  bool replace = false;
  std::vector<Module*> found;
  CloneMemo memo;
};

}  // namespace

void untangle_clone(const Module& original, Module& copy) {
  SharedParts shared;
  const_cast<Module&>(original).visit_parts(shared);
  if (shared.found.empty()) return;
  shared.replace = true;
  copy.visit_parts(shared);
}

void throw_cannot_clone(const Module& module, const char* why) {
  throw_error<NotImplementedError>("clone: ", module.type_name(), " cannot be copied: ", why);
}

}  // namespace kiln::nn::detail
