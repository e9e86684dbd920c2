// share_memory: a forked process sees the module's values, and its writes are seen.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kiln/core/error.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "tests/nn/models.h"
#include "tests/support/near.h"

using namespace kiln;
using kiln::nn::Linear;
using kiln::nn::Param;
using kiln::test::near;
using kiln::test::Net;

namespace {

struct Tied : nn::Module {
  Linear a{2, 2, false};
  Linear b{2, 2, false};
  KILN_MODULE(Tied, a, b)
};

}  // namespace

TEST_CASE("share_memory_: a child process reads and writes the same values") {
  Net net;
  net.scale.replace(full({3}, 2.0));
  CHECK(!net.scale->is_shared());
  CHECK(&net.share_memory() == &net);
  CHECK(net.scale->is_shared());
  CHECK(net.steps->is_shared());
  CHECK(net.conv.weight->requires_grad());
  // Through pointers: a child of a process with threads must not compute.
  float* const scale = net.scale->data_ptr<float>();
  int64_t* const steps = net.steps->data_ptr<int64_t>();
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const bool seen = scale[0] == 2.0F && scale[2] == 2.0F && steps[0] == 0;
    scale[1] = 7.0F;
    steps[0] = 11;
    _exit(seen ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(near(*net.scale, {2, 7, 2}));
  CHECK(net.steps->item<int64_t>() == 11);
}

TEST_CASE("share_memory_: the tensor stays the same object, with its gradient and history") {
  Tensor x = tensor({1.F, 2.F});
  x.requires_grad_();
  const Tensor other_name = x;
  (x * 3.0).sum().backward_accumulate();
  Tensor& same = x.share_memory_();
  CHECK(&same == &x);
  CHECK(other_name.is_shared());
  CHECK(near(x.grad(), {3, 3}));
  CHECK(near(x, {1, 2}));
  const float* const before = x.data_ptr<float>();
  x.share_memory_();
  CHECK(x.data_ptr<float>() == before);
  // A strided view keeps its strides.
  Tensor t = tensor({{1.F, 2.F}, {3.F, 4.F}}).t();
  t.share_memory_();
  CHECK(near(t, {1, 3, 2, 4}));
  CHECK(t.stride() == Strides{1, 2});
  Tensor none = zeros({0});
  none.share_memory_();
  CHECK(none.is_shared());
}

TEST_CASE(
    "share_memory: ties stay, gradients are shared too, training goes on in the same memory") {
  Tied tied;
  tied.b.weight = Param<Tensor>::initialized(nn::ParamId(), *tied.a.weight);
  tied.a(ones({1, 2})).sum().backward_accumulate();
  tied.share_memory();
  CHECK(tied.a.weight->is_same(*tied.b.weight));
  CHECK(tied.a.weight->grad().is_shared());
  NoGradGuard no_grad;
  const float* const before = tied.a.weight->data_ptr<float>();
  tied.a.weight->add_(1.0);
  CHECK(tied.a.weight->data_ptr<float>() == before);
  CHECK(tied.a.weight->is_shared());
}
