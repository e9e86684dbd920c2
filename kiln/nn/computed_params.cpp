#include "kiln/nn/computed_params.h"

#include <algorithm>
#include <vector>

namespace kiln::nn::detail {
namespace {

struct Found {
  std::string path;
  Param<Tensor>* param;
  Module* owner;
};

class Finder final : public MemberVisitor {
 public:
  Finder(Module& owner, std::string prefix, std::vector<Found>& out, std::vector<Module*>& seen)
      : owner_(owner), prefix_(std::move(prefix)), out_(out), seen_(seen) {}

  void parameter(std::string_view name, Param<Tensor>& value) override { add(name, value); }
  void computed_parameter(std::string_view name, Param<Tensor>& value) override {
    add(name, value);
  }
  void buffer(std::string_view, Buffer&) override {}
  void module(std::string_view name, Module& value) override {
    if (std::find(seen_.begin(), seen_.end(), &value) != seen_.end()) return;
    seen_.push_back(&value);
    Finder below(value, prefix_ + std::string(name) + ".", out_, seen_);
    value.visit_parts(below);
  }
  void group(std::string_view name, MemberGroup& elements) override {
    Finder below(owner_, prefix_ + std::string(name) + ".", out_, seen_);
    elements.visit_members(below);
  }

 private:
  void add(std::string_view name, Param<Tensor>& value) {
    if (value.defined()) out_.push_back({prefix_ + std::string(name), &value, &owner_});
  }

  Module& owner_;
  std::string prefix_;
  std::vector<Found>& out_;
  std::vector<Module*>& seen_;
};

}  // namespace

void for_each_param(Module& module,
                    const std::function<void(const std::string&, Param<Tensor>&, Module&)>& f) {
  std::vector<Found> found;
  std::vector<Module*> seen = {&module};
  Finder finder(module, "", found, seen);
  module.visit_parts(finder);
  for (const Found& each : found) f(each.path, *each.param, *each.owner);
}

}  // namespace kiln::nn::detail
