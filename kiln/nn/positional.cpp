#include "kiln/nn/positional.h"

#include "kiln/core/error.h"

namespace kiln::nn::detail {

void throw_given_twice(std::string_view config, std::string_view name) {
  throw_error<ValueError>(config, ": ", name, " was given twice: by its position and by its name");
}

}  // namespace kiln::nn::detail
