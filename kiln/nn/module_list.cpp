#include "kiln/nn/module_list.h"

namespace kiln::nn {

ModuleList::ModuleList(const ModuleList& other) : Module(other), entries_(other.entries_) {}

ModuleList& ModuleList::operator=(const ModuleList& other) {
  if (this != &other) *this = ModuleList(other);
  return *this;
}

ModuleList& ModuleList::extend(const ModuleList& other) {
  const size_t count = other.size();  // it may be this one
  for (size_t i = 0; i < count; ++i) {
    entries_.push_back("ModuleList", other.entries_.items()[i].second);
  }
  return *this;
}

ModuleList ModuleList::slice(std::optional<int64_t> start, std::optional<int64_t> stop,
                             int64_t step) const {
  ModuleList out;
  out.entries_ = entries_.slice("ModuleList", start, stop, step);
  return out;
}

KILN_MODULE_DEFINED_WITHOUT_VISIT(ModuleList)

}  // namespace kiln::nn
