#include "kiln/nn/gelu.h"

#include "kiln/core/error.h"

namespace kiln::nn {

GELU::GELU(GELUConfig config) : Layer(std::move(config)) {
  const std::string& approximate = config_.approximate;
  if (approximate != "none" && approximate != "tanh") {
    throw_error<ValueError>("GELU: approximate must be 'none' or 'tanh'; got '", approximate, "'");
  }
}

KILN_MODULE_DEFINED(GELU)

}  // namespace kiln::nn
