#include "kiln/optim/averaged_model.h"

#include "kiln/core/error.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/elementwise/in_place.h"

namespace kiln::optim::detail {

namespace {

void check_pair(const char* what, const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  if (a.size() != b.size()) {
    throw_error<ValueError>("AveragedModel: the model has another number of ", what, "; got ",
                            b.size(), "; expected ", a.size());
  }
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].shape() == b[i].shape()) continue;
    throw_error<ValueError>("AveragedModel: ", what, " ", i, " has another shape; got ",
                            b[i].shape(), "; expected ", a[i].shape());
  }
}

}  // namespace

void check_average(const AveragedModelOptions& options) {
  if (options.decay && !(*options.decay >= 0.0 && *options.decay <= 1.0)) {
    throw_error<ValueError>("AveragedModel: decay must be in [0, 1]; got ", *options.decay);
  }
}

void check_n_averaged(int64_t count) {
  if (count < 0) throw_error<ValueError>("AveragedModel: n_averaged must be >= 0; got ", count);
}

void average_into(nn::Module& averaged, nn::Module& current, const AveragedModelOptions& options,
                  int64_t count) {
  NoGradGuard no_grad;
  const std::vector<Tensor> ours = averaged.parameters(), theirs = current.parameters();
  const std::vector<Tensor> our_buffers = averaged.buffers(), buffers = current.buffers();
  check_pair("parameter", ours, theirs);
  check_pair("buffer", our_buffers, buffers);
  const double share =
      options.decay ? 1.0 - *options.decay : 1.0 / (static_cast<double>(count) + 1.0);
  const auto take = [&](const Tensor& mean, const Tensor& newest, bool copy) {
    Tensor to = mean.detach();
    const Tensor from = newest.detach().to(to.device(), to.dtype());
    if (copy || count == 0 || !to.is_floating_point()) {
      to.copy_(from);
    } else {
      lerp_(to, from, share);
    }
  };
  for (size_t i = 0; i < ours.size(); ++i) take(ours[i], theirs[i], false);
  for (size_t i = 0; i < buffers.size(); ++i) {
    take(our_buffers[i], buffers[i], !options.use_buffers);
  }
}

}  // namespace kiln::optim::detail
