// Cpu's fused optimizer steps against Reference.
#include "neural_check.h"

using namespace kiln;
using namespace kiln::test;

namespace {

// Parameters of several sizes, one of them empty and one larger than a piece of the loop.
std::vector<HostHandle> tensors(DType dtype, uint64_t seed, bool positive = false) {
  std::vector<HostHandle> list;
  for (const Shape& shape : {Shape{7}, Shape{0, 3}, Shape{300, 130}, Shape{}, Shape{17, 3}}) {
    list.push_back(random_tensor(shape, dtype, seed++));
    if (positive) list.back() = Reference::float_abs(list.back());
  }
  return list;
}

void check_lists(const std::vector<HostHandle>& got, const std::vector<HostHandle>& want,
                 double tolerance) {
  REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < got.size(); ++i) check_close(got[i], want[i], tolerance);
}

}  // namespace

TEST_CASE("sgd_step: momentum, nesterov, dampening, weight decay") {
  at_every_target([] {
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
      for (const SgdStep& step :
           {SgdStep{0.1, 0, 0, 0, false, true}, SgdStep{0.1, 0.9, 0, 0, false, true},
            SgdStep{0.1, 0.9, 0.2, 0.01, false, false}, SgdStep{0.1, 0.9, 0, 0.01, true, false}}) {
        auto params = tensors(dtype, 1), want = tensors(dtype, 1);
        const auto grads = tensors(dtype, 20);
        std::vector<HostHandle> buffers, want_buffers;
        if (step.momentum != 0.0) {
          buffers = tensors(dtype, 40);
          want_buffers = tensors(dtype, 40);
        }
        Cpu::float_sgd_step(params, grads, buffers, step);
        Reference::float_sgd_step(want, grads, want_buffers, step);
        check_lists(params, want, kernel_tolerance(dtype));
        check_lists(buffers, want_buffers, kernel_tolerance(dtype));
      }
    }
  });
}

TEST_CASE("adam_step: weight decay of both kinds, amsgrad") {
  at_every_target([] {
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
      for (const AdamStep& step :
           {AdamStep{}, AdamStep{1e-2, 0.8, 0.99, 1e-6, 0.1, false, false, 3},
            AdamStep{1e-2, 0.9, 0.999, 1e-8, 0.1, true, true, 7}}) {
        auto params = tensors(dtype, 1), want = tensors(dtype, 1);
        auto m = tensors(dtype, 40), want_m = tensors(dtype, 40);
        auto v = tensors(dtype, 60, true), want_v = tensors(dtype, 60, true);
        std::vector<HostHandle> most, want_most;
        if (step.amsgrad) {
          most = tensors(dtype, 80, true);
          want_most = tensors(dtype, 80, true);
        }
        const auto grads = tensors(dtype, 20);
        Cpu::float_adam_step(params, grads, m, v, most, step);
        Reference::float_adam_step(want, grads, want_m, want_v, want_most, step);
        check_lists(params, want, kernel_tolerance(dtype));
        check_lists(m, want_m, kernel_tolerance(dtype));
        check_lists(v, want_v, kernel_tolerance(dtype));
        check_lists(most, want_most, kernel_tolerance(dtype));
      }
    }
  });
}

TEST_CASE("optimizer steps: views, versions, no parameters at all") {
  const HostHandle base = random_tensor({9, 9}, DType::f32, 1);
  std::vector<HostHandle> params = {host::permute(random_tensor({4, 3}, DType::f32, 2), {1, 0}),
                                    host::slice(base, 0, Range{2, 5, 1})};
  std::vector<HostHandle> want = {Reference::float_contiguous(params[0]),
                                  Reference::float_contiguous(params[1])};
  want[0] = host::from_data(host::into_data(params[0]), Device());
  want[1] = host::from_data(host::into_data(params[1]), Device());
  const std::vector<HostHandle> grads = {
      host::permute(random_tensor({4, 3}, DType::f32, 3), {1, 0}),
      host::permute(random_tensor({9, 3}, DType::f32, 4), {1, 0})};
  std::vector<HostHandle> none;
  const uint32_t before = params[1]->version();
  Cpu::float_sgd_step(params, grads, none, SgdStep{0.5, 0, 0, 0, false, true});
  Reference::float_sgd_step(want, grads, none, SgdStep{0.5, 0, 0, 0, false, true});
  check_lists(params, want, 1e-6);
  CHECK(params[1]->version() > before);

  std::vector<HostHandle> plain = {random_tensor({5}, DType::f32, 5)};
  const std::vector<HostHandle> plain_grads = {random_tensor({5}, DType::f32, 6)};
  const uint32_t plain_before = plain[0]->version();
  Cpu::float_sgd_step(plain, plain_grads, none, SgdStep{0.5, 0, 0, 0, false, true});
  CHECK(plain[0]->version() == plain_before + 1);

  Cpu::float_sgd_step(none, none, none, SgdStep{});
  Cpu::float_adam_step(none, none, none, none, none, AdamStep{});
}

TEST_CASE("optimizer steps: the same bits at any number of threads") {
  check_deterministic([] {
    auto params = tensors(DType::f32, 1);
    auto m = tensors(DType::f32, 40);
    auto v = tensors(DType::f32, 60, true);
    std::vector<HostHandle> none;
    Cpu::float_adam_step(params, tensors(DType::f32, 20), m, v, none, AdamStep{});
    Cpu::float_sgd_step(params, tensors(DType::f32, 20), m, SgdStep{0.1, 0.9, 0, 0, true, false});
    params.insert(params.end(), m.begin(), m.end());
    params.insert(params.end(), v.begin(), v.end());
    return params;
  });
}
