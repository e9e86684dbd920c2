#include "kiln/nn/sequential.h"

#include "kiln/core/error.h"

namespace kiln::nn {

Sequential::Sequential(std::initializer_list<std::pair<std::string, AnyModule>> modules) {
  for (const auto& [name, module] : modules) push_back(name, module);
}

Sequential::Sequential(const Sequential& other) : Module(other), entries_(other.entries_) {}

Sequential& Sequential::operator=(const Sequential& other) {
  if (this != &other) *this = Sequential(other);
  return *this;
}

Tensor Sequential::forward(TensorArg x) const {
  Tensor out = x.take();
  for (Module& module : *this) out = module.call_with_tensor(std::move(out));
  return out;
}

Sequential& Sequential::push_back(AnyModule module) {
  entries_.push_back("Sequential", detail::checked_part("Sequential", *this, module.module()));
  return *this;
}

Sequential& Sequential::push_back(const std::string& name, AnyModule module) {
  entries_.add("Sequential", name, detail::checked_part("Sequential", *this, module.module()));
  return *this;
}

Sequential& Sequential::extend(const Sequential& other) {
  const size_t count = other.size();  // it may be this one
  for (size_t i = 0; i < count; ++i) {
    entries_.push_back("Sequential", other.entries_.items()[i].second);
  }
  return *this;
}

Sequential& Sequential::insert(int64_t index, AnyModule module) {
  entries_.insert("Sequential", index, detail::checked_part("Sequential", *this, module.module()));
  return *this;
}

Sequential& Sequential::set(int64_t index, AnyModule module) {
  entries_.set("Sequential", index, detail::checked_part("Sequential", *this, module.module()));
  return *this;
}

Sequential Sequential::slice(std::optional<int64_t> start, std::optional<int64_t> stop,
                             int64_t step) const {
  Sequential out;
  out.entries_ = entries_.slice("Sequential", start, stop, step);
  return out;
}

KILN_MODULE_DEFINED_WITHOUT_VISIT(Sequential)

}  // namespace kiln::nn
