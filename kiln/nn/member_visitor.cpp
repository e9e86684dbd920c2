#include "kiln/nn/member_visitor.h"

#include "kiln/core/error.h"
#include "kiln/nn/module.h"

namespace kiln::nn::detail {

void throw_cannot_hold(const Module& module) {
  throw_error<TypeError>("Module: a part cannot hold a module of another class; got ",
                         module.type_name());
}

std::string_view next_name(std::string_view& names) {
  const size_t comma = names.find(',');
  std::string_view name = names.substr(0, comma);
  names = comma == std::string_view::npos ? std::string_view() : names.substr(comma + 1);
  const size_t first = name.find_first_not_of(' ');
  const size_t last = name.find_last_not_of(' ');
  name = name.substr(first, last - first + 1);
  constexpr std::string_view self = "this->";  // how a template names a member of its base
  if (name.starts_with(self)) name.remove_prefix(self.size());
  return name;
}

}  // namespace kiln::nn::detail
