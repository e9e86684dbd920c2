#include "kiln/nn/gelu.h"

#include <utility>

#include "kiln/core/error.h"

namespace kiln::nn {

GELU::GELU(std::string approximate) : approximate_(std::move(approximate)) {
  if (approximate_ != "none" && approximate_ != "tanh") {
    throw_error<ValueError>("GELU: approximate must be 'none' or 'tanh'; got '", approximate_, "'");
  }
}

}  // namespace kiln::nn
