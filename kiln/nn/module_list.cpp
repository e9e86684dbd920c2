#include "kiln/nn/module_list.h"

#include "kiln/core/error.h"
#include "kiln/nn/module_tree.h"

namespace kiln::nn {

ModuleList::ModuleList(const ModuleList& other) : Module(other) {
  detail::CloneMemo memo;
  for (const auto& module : other.modules_) modules_.push_back(memo.clone(module));
  detail::tie_again(detail::all_params(other), detail::all_params(*this));
}

ModuleList& ModuleList::operator=(const ModuleList& other) {
  if (this != &other) *this = ModuleList(other);
  return *this;
}

void ModuleList::visit_members(MemberVisitor& visitor) {
  size_t i = 0;
  for (auto& module : modules_) detail::visit_member(visitor, std::to_string(i++), module);
}

ModuleList& ModuleList::push_back(std::shared_ptr<Module> module) {
  if (module == nullptr) throw_error<TypeError>("ModuleList: expected a module; got null");
  modules_.push_back(std::move(module));
  return *this;
}

Module& ModuleList::operator[](int64_t index) const {
  return *modules_[detail::element_index("ModuleList", index, size())];
}

}  // namespace kiln::nn
