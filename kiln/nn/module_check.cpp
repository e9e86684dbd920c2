// What KILN_MODULE cannot see when it is compiled: parts that it does not name.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>

#include <cxxabi.h>

#include "kiln/core/error.h"
#include "kiln/core/fork.h"
#include "kiln/core/warning.h"
#include "kiln/nn/held_elements.h"
#include "kiln/nn/module.h"

namespace kiln::nn {
namespace {

using detail::ModuleClass;
using detail::PartKind;

std::string class_name(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), std::free);
  return status == 0 ? text.get() : type.name();
}

struct Extent {
  const char* begin;
  const char* end;
  std::string name;
};

// Where the parts lie that a visit shows.
class Extents final : public MemberVisitor {
 public:
  void parameter(std::string_view name, Param<Tensor>& value) override {
    add(name, &value, sizeof(value));
  }
  void computed_parameter(std::string_view name, Param<Tensor>& value) override {
    add(name, &value, sizeof(value));
  }
  void buffer(std::string_view name, Buffer& value) override { add(name, &value, sizeof(value)); }
  void module(std::string_view name, Module& value) override {
    add(name, dynamic_cast<const void*>(&value), value.module_class().size);
  }
  void group(std::string_view name, MemberGroup& elements) override {
    const std::string outer = std::exchange(group_, group_ + std::string(name) + ".");
    elements.visit_members(*this);
    group_ = outer;
  }

  std::vector<Extent> found;

 private:
  void add(std::string_view name, const void* at, size_t size) {
    const auto* begin = static_cast<const char*>(at);
    found.push_back({begin, begin + size, group_ + std::string(name)});
  }

  std::string group_;
};

// A word of an object, whatever stands there: other threads may write to members meanwhile, and a
// container may keep memory in itself that it does not use.
__attribute__((no_sanitize("address", "thread"))) uint64_t word_at(const char* at) {
  return *reinterpret_cast<const volatile uint64_t*>(at);
}

// How far into its part a mark lies.
template <class Part, class Mark>
std::ptrdiff_t offset_of(const Part& part, const Mark& mark) {
  return reinterpret_cast<const char*>(&mark) - reinterpret_cast<const char*>(&part);
}

}  // namespace

namespace detail {

// Looks at the marks of parts.
struct UnnamedParts {
  // What the part is whose mark lies at `at`; empty when it is None.
  static std::string describe(PartKind kind, const char* at, const Module& some_module) {
    switch (kind) {
      case PartKind::module:
        return concat("a ", module_of(at, some_module).type_name());
      case PartKind::parameter: {
        const Param<Tensor> some;
        const auto& param =
            *reinterpret_cast<const Param<Tensor>*>(at - offset_of(some, some.mark_));
        return param.defined() ? concat("a parameter of shape ", param.lazy_shape()) : "";
      }
      case PartKind::buffer: {
        const Buffer some;
        const auto& buffer = *reinterpret_cast<const Buffer*>(at - offset_of(some, some.mark_));
        return buffer.defined() ? concat("a buffer of shape ", buffer.get().shape()) : "";
      }
      default:
        return "a parameter";
    }
  }

  static const Module& module_of(const char* mark, const Module& some_module) {
    return *reinterpret_cast<const Module*>(mark - offset_of(some_module, some_module.mark_));
  }
  static const char* end_of_module(const char* mark, const Module& some_module) {
    const Module& found = module_of(mark, some_module);
    return static_cast<const char*>(dynamic_cast<const void*>(&found)) + found.module_class().size;
  }

  static bool covered(const char* at, const std::vector<Extent>& named) {
    return std::any_of(named.begin(), named.end(),
                       [at](const Extent& e) { return at >= e.begin && at < e.end; });
  }
  // Where in the object an address lies, in words.
  static std::string place(const char* at, const char* start, const std::vector<Extent>& named) {
    const Extent* before = nullptr;
    for (const Extent& e : named) {
      const bool nearer =
          e.end <= at && e.begin >= start && (before == nullptr || e.begin > before->begin);
      if (nearer) before = &e;
    }
    return before == nullptr ? " in front of all parts that it names"
                             : concat(" behind '", before->name, "'");
  }
  // What is marked at an address, in words; empty where nothing is, or None.
  static std::string part_at(const char* at, const Module& module, PartKind* kind) {
    const uint64_t word = word_at(at) ^ reinterpret_cast<uintptr_t>(at);
    const auto* const mark = std::find(std::begin(kPartMarks), std::end(kPartMarks), word);
    if (mark == std::end(kPartMarks)) return "";
    *kind = static_cast<PartKind>(mark - std::begin(kPartMarks));
    return describe(*kind, at, module);
  }

  static std::string find_unnamed(const Module& module, const char* start, size_t size,
                                  const std::vector<Extent>& named) {
    std::string out;
    const char* const own = reinterpret_cast<const char*>(&module.mark_);
    for (const char* at = start; at + sizeof(uint64_t) <= start + size; at += sizeof(uint64_t)) {
      if (at == own || covered(at, named)) continue;
      PartKind kind = PartKind::module;
      const std::string what = part_at(at, module, &kind);
      if (what.empty()) continue;
      out += concat(out.empty() ? "" : ", ", what, place(at, start, named));
      // What lies within the part is not the module's.
      if (kind == PartKind::module) at = end_of_module(at, module) - sizeof(uint64_t);
    }
    return out;
  }

  // The first std::vector whose elements are, or hold, parts that are not named.
  static std::string find_in_vectors(const Module& module, const char* start, size_t size,
                                     const std::vector<Extent>& named) {
    constexpr size_t kPointers = 3 * sizeof(uint64_t);
    for (const char* at = start; at + kPointers <= start + size; at += sizeof(uint64_t)) {
      if (covered(at, named)) continue;
      const Memory elements = vector_elements(at);
      for (const char* in = elements.begin; in < elements.end; in += sizeof(uint64_t)) {
        if (covered(in, named)) continue;
        PartKind kind = PartKind::module;
        const std::string what = part_at(in, module, &kind);
        if (!what.empty())
          return concat("a std::vector that holds ", what, place(at, start, named));
      }
    }
    return "";
  }
};

// Says of each class at most once what lies in a vector.
void warn_of_vector(const ModuleClass& of, const std::string& found) {
  static auto& mutex = *new kiln::detail::ForkSafeMutex(kiln::detail::ForkOrder::module_classes);
  static auto& said = *new std::set<const ModuleClass*>();
  {
    const std::lock_guard lock(mutex);
    if (!said.insert(&of).second) return;
  }
  warn(concat("KILN_MODULE(", of.name,
              ", ...): a part that it does not name is neither trained nor saved; got ", found,
              "; expected the vector's name in the list, or pointers in it where they are no parts "
              "of the model"));
}
}  // namespace detail

void Module::check_parts() const {
  detail::CopySession::drop(this);
  const ModuleClass& of = module_class();
  if (typeid(*this) != of.type) {
    const std::string name = class_name(typeid(*this));
    throw_error<RuntimeError>("KILN_MODULE: ", name, " derives from ", of.name,
                              " and has no such line, so that its parts would be neither trained "
                              "nor saved, and ",
                              of.name, "::forward would be called; expected KILN_MODULE_DERIVED(",
                              name, ", ", of.name, ", its parts) in it");
  }
  auto& self = const_cast<Module&>(*this);
  Extents named;
  self.visit_members(named);
  const auto* const end = static_cast<const char*>(of.end_of_parts(*this));
  const auto* const start = static_cast<const char*>(dynamic_cast<const void*>(this));
  for (const Extent& part : named.found) {
    if (end == nullptr || part.begin < end || part.begin >= start + of.size) continue;
    throw_error<RuntimeError>("KILN_MODULE(", of.name, ", ...): the line stands in front of '",
                              part.name,
                              "'; expected it behind the parts that it names, so that copies of "
                              "the module keep tied parameters tied");
  }
  self.visit_unnamed(named);
  const std::string found = detail::UnnamedParts::find_unnamed(*this, start, of.size, named.found);
  if (!found.empty()) {
    throw_error<RuntimeError>("KILN_MODULE(", of.name,
                              ", ...): a part that it does not name is neither trained nor saved; "
                              "got ",
                              found,
                              "; expected its name in the list, or a pointer to it where it is no "
                              "part of the model");
  }
  // What looks like a vector may be left from another object, where a member does not use all of
  // its memory. So only classes that a user wrote are searched for them.
  if (!class_name(of.type).starts_with("kiln::nn::")) {
    const std::string held =
        detail::UnnamedParts::find_in_vectors(*this, start, of.size, named.found);
    if (!held.empty()) detail::warn_of_vector(of, held);
  }
  checked_as_.store(&of, std::memory_order_release);
}

}  // namespace kiln::nn
