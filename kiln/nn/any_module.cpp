#include "kiln/nn/any_module.h"

#include "kiln/core/error.h"

namespace kiln::nn {

void AnyModule::set_module(std::shared_ptr<Module> module) {
  if (module == nullptr) throw_error<TypeError>("AnyModule: expected a module; got null");
  module_ = std::move(module);
}

namespace detail {

void throw_no_module() {
  throw_error<TypeError>("AnyModule: it has no module; got an object that was moved from");
}

void throw_wrong_class(const char* op, int64_t index, const Module& module, const char* expected) {
  throw_error<TypeError>(op, ": module ", index, " is of another class; got ", module.type_name(),
                         "; expected ", expected);
}

}  // namespace detail
}  // namespace kiln::nn
