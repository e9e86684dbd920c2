#include "kiln/nn/softmax.h"

namespace kiln::nn {
namespace {

// Without a dim: the first one of vectors and of tensors with 3 dims, else the second one, as
// PyTorch's layers do.
int64_t dim_of(const Tensor& x, const std::optional<int64_t>& dim) {
  if (dim) return *dim;
  return x.dim() == 0 || x.dim() == 1 || x.dim() == 3 ? 0 : 1;
}

std::string repr(const std::optional<int64_t>& dim) {
  return "dim=" + (dim ? std::to_string(*dim) : std::string("None"));
}

}  // namespace

Tensor Softmax::forward(TensorArg x) const { return softmax(x, dim_of(x, config_.dim)); }
std::string Softmax::extra_repr() const { return repr(config_.dim); }

Tensor LogSoftmax::forward(TensorArg x) const { return log_softmax(x, dim_of(x, config_.dim)); }
std::string LogSoftmax::extra_repr() const { return repr(config_.dim); }

KILN_MODULE_DEFINED(Softmax)
KILN_MODULE_DEFINED(LogSoftmax)

}  // namespace kiln::nn
