#include "kiln/nn/sequential.h"

#include "kiln/core/error.h"
#include "kiln/nn/module_tree.h"

namespace kiln::nn {
namespace {

// Shows an element to a visitor in such a way that it can be replaced.
class Element final : public SharedModule {
 public:
  explicit Element(AnyModule& module) : module_(module) {}
  std::shared_ptr<Module> get() const override { return module_.module(); }
  void set(const std::shared_ptr<Module>& module) override { module_.set_module(module); }

 private:
  AnyModule& module_;
};

}  // namespace

Sequential::Sequential(const Sequential& other) : Module(other), modules_(other.modules_) {
  detail::CloneMemo memo;
  for (auto& [name, module] : modules_) module.set_module(memo.clone(module.module()));
  detail::tie_again(detail::all_params(other), detail::all_params(*this));
}

Sequential& Sequential::operator=(const Sequential& other) {
  if (this != &other) *this = Sequential(other);
  return *this;
}

void Sequential::visit_members(MemberVisitor& visitor) {
  for (auto& [name, module] : modules_) {
    Element element(module);
    visitor.shared_module(name, element);
  }
}

Tensor Sequential::forward(TensorArg x) const {
  Tensor out = x.take();
  for (const auto& [name, module] : modules_) out = module(std::move(out));
  return out;
}

Sequential& Sequential::push_back(AnyModule module) {
  return push_back(std::to_string(modules_.size()), std::move(module));
}

Sequential& Sequential::push_back(const std::string& name, AnyModule module) {
  bool taken = false;
  for (const auto& [known, other] : modules_) taken = taken || known == name;
  if (taken || name.empty() || name.find('.') != std::string::npos) {
    throw_error<KeyError>("Sequential: a name must be new, not empty and without '.'; got '", name,
                          "'");
  }
  modules_.emplace_back(name, std::move(module));
  return *this;
}

Module& Sequential::operator[](int64_t index) const {
  return *modules_[detail::element_index("Sequential", index, size())].second.module();
}

}  // namespace kiln::nn
