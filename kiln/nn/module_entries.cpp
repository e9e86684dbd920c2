#include "kiln/nn/module_entries.h"

#include <algorithm>

#include "kiln/core/error.h"
#include "kiln/core/slice.h"
#include "kiln/nn/module_tree.h"

namespace kiln::nn::detail {
namespace {

void check_name(const char* op, const std::string& name) {
  if (!name.empty() && name.find('.') == std::string::npos) return;
  throw_error<KeyError>(op, ": a name must not be empty and not contain '.'; got '", name, "'");
}

bool is_number(const std::string& name) {
  return std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Shows an element to a visitor in such a way that it can be replaced.
class Element final : public SharedModule {
 public:
  explicit Element(std::shared_ptr<Module>& module) : module_(module) {}
  std::shared_ptr<Module> get() const override { return module_; }
  void set(const std::shared_ptr<Module>& module) override { module_ = module; }

 private:
  std::shared_ptr<Module>& module_;
};

}  // namespace

std::shared_ptr<Module> checked_module(const char* op, std::shared_ptr<Module> module) {
  if (module == nullptr) throw_error<TypeError>(op, ": expected a module; got null");
  return module;
}

std::shared_ptr<Module> checked_part(const char* op, const Module& owner,
                                     const std::shared_ptr<Module>& module) {
  if (module.use_count() <= 1) return module;
  for (const Module* part : std::as_const(*module).modules()) {
    if (part == &owner) {
      throw_error<ValueError>(op, ": a module cannot be a part of itself; got a ",
                              module->type_name(), " that is or contains this ", owner.type_name());
    }
  }
  return module;
}

void throw_wrong_class(const char* op, const std::string& which, const Module& module,
                       const char* expected) {
  throw_error<TypeError>(op, ": module ", which, " is of another class; got ", module.type_name(),
                         "; expected ", expected);
}

ModuleEntries::ModuleEntries(const ModuleEntries& other) {
  CloneMemo memo;
  for (const auto& [name, module] : other.items_) items_.emplace_back(name, memo.clone(module));
}

void ModuleEntries::visit(MemberVisitor& visitor) {
  for (auto& [name, module] : items_) {
    Element element(module);
    visitor.shared_module(name, element);
  }
}

// Of 0 .. end - 1.
size_t ModuleEntries::position(const char* op, int64_t index, size_t end) const {
  const auto n = static_cast<int64_t>(size());
  const int64_t at = index < 0 ? index + n : index;
  if (at < 0 || at >= static_cast<int64_t>(end)) {
    throw_error<IndexError>(op, ": index out of range; got ", index, " for ", n, " modules");
  }
  return static_cast<size_t>(at);
}

const std::shared_ptr<Module>& ModuleEntries::at(const char* op, int64_t index) const {
  return items_[position(op, index, size())].second;
}

void ModuleEntries::set(const char* op, int64_t index, std::shared_ptr<Module> module) {
  items_[position(op, index, size())].second = checked_module(op, std::move(module));
}

void ModuleEntries::insert(const char* op, int64_t index, std::shared_ptr<Module> module) {
  const size_t at = position(op, index, size() + 1);
  items_.emplace(items_.begin() + static_cast<std::ptrdiff_t>(at), "0",
                 checked_module(op, std::move(module)));
  rename_numbers();
}

std::shared_ptr<Module> ModuleEntries::take(const char* op, int64_t index) {
  const size_t at = position(op, index, size());
  std::shared_ptr<Module> out = std::move(items_[at].second);
  items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(at));
  rename_numbers();
  return out;
}

ModuleEntries ModuleEntries::slice(const char* op, std::optional<int64_t> start,
                                   std::optional<int64_t> stop, int64_t step) const {
  if (step < 1) throw_error<ValueError>(op, ": the step of a slice must be positive; got ", step);
  const auto n = static_cast<int64_t>(size());
  const auto clamped = [n](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + n : i, 0, n); };
  ModuleEntries out;
  for (int64_t i = clamped(start.value_or(0)); i < clamped(stop.value_or(n)); i += step) {
    out.items_.push_back(items_[static_cast<size_t>(i)]);
  }
  out.rename_numbers();
  return out;
}

void ModuleEntries::push_back(const char* op, std::shared_ptr<Module> module) {
  add(op, std::to_string(size()), std::move(module));
}

const std::shared_ptr<Module>* ModuleEntries::find(std::string_view name) const {
  const auto found = std::find_if(items_.begin(), items_.end(),
                                  [name](const Item& item) { return item.first == name; });
  return found == items_.end() ? nullptr : &found->second;
}

const std::shared_ptr<Module>& ModuleEntries::at(const char* op, std::string_view name) const {
  const std::shared_ptr<Module>* found = find(name);
  if (found == nullptr) throw_error<KeyError>(op, ": no module is named '", name, "'");
  return *found;
}

void ModuleEntries::set(const char* op, const std::string& name, std::shared_ptr<Module> module) {
  check_name(op, name);
  checked_module(op, module);
  for (Item& item : items_) {
    if (item.first == name) {
      item.second = std::move(module);
      return;
    }
  }
  items_.emplace_back(name, std::move(module));
}

void ModuleEntries::add(const char* op, const std::string& name, std::shared_ptr<Module> module) {
  if (find(name) != nullptr) throw_error<KeyError>(op, ": there is a module named '", name, "'");
  set(op, name, std::move(module));
}

std::shared_ptr<Module> ModuleEntries::take(const char* op, std::string_view name) {
  std::shared_ptr<Module> out = at(op, name);
  std::erase_if(items_, [name](const Item& item) { return item.first == name; });
  return out;
}

// Names given by the user stay.
void ModuleEntries::rename_numbers() {
  for (size_t i = 0; i < items_.size(); ++i) {
    if (is_number(items_[i].first)) items_[i].first = std::to_string(i);
  }
}

}  // namespace kiln::nn::detail
