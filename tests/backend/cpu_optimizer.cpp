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

namespace {

// Every rule with options of every kind.
std::vector<OptimizerStep> some_steps() {
  return {SgdStep{0.1, 0, 0, 0, false, true},
          SgdStep{0.1, 0.9, 0, 0, false, true},
          SgdStep{0.1, 0.9, 0.2, 0.01, false, false},
          SgdStep{0.1, 0.9, 0, 0.01, true, false},
          AdamStep{},
          AdamStep{1e-2, 0.8, 0.99, 1e-6, 0.1, false, false, 3},
          AdamStep{1e-2, 0.9, 0.999, 1e-8, 0.1, true, true, 7},
          AdamStep{1e-2, 0.9, 0.999, 1e-8, 0.1, true, false, 7, true},
          AdagradStep{.lr_decay = 0.1, .weight_decay = 0.1, .step = 3},
          AdadeltaStep{.weight_decay = 0.1},
          RMSpropStep{.weight_decay = 0.1},
          RMSpropStep{.momentum = 0.9},
          AdamaxStep{.weight_decay = 0.1, .step = 2},
          NAdamStep{.weight_decay = 0.1, .mu = 0.45, .mu_next = 0.46, .product = 0.2, .step = 2},
          NAdamStep{.weight_decay = 0.1, .decoupled = true, .mu = 0.4, .mu_next = 0.5},
          RAdamStep{.weight_decay = 0.1, .step = 2},
          RAdamStep{.weight_decay = 0.1, .decoupled = true, .step = 2000},
          RpropStep{},
          AsgdStep{.lambd = 0.1, .weight_decay = 0.1},
          AsgdStep{.mu = 0.25},
          LionStep{.weight_decay = 0.1},
          AdanStep{.weight_decay = 0.1},
          AdanStep{.weight_decay = 0.1, .no_prox = true, .step = 5}};
}

// State of a step, above 0 as squares are.
std::vector<HostHandle> state_of(const OptimizerStep& step, DType dtype) {
  std::vector<HostHandle> state;
  for (size_t s = 0; s < slots_of(step); ++s) {
    for (HostHandle& x : tensors(dtype, 40 + 20 * s, true)) state.push_back(std::move(x));
  }
  return state;
}

}  // namespace

TEST_CASE("optimizer_step: every rule") {
  at_every_target([] {
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
      for (const OptimizerStep& step : some_steps()) {
        CAPTURE(step.index());
        auto params = tensors(dtype, 1), want = tensors(dtype, 1);
        auto state = state_of(step, dtype), want_state = state_of(step, dtype);
        const auto grads = tensors(dtype, 20);
        Cpu::float_optimizer_step(params, grads, state, step);
        Reference::float_optimizer_step(want, grads, want_state, step);
        check_lists(params, want, kernel_tolerance(dtype));
        check_lists(state, want_state, kernel_tolerance(dtype));
      }
    }
  });
}

TEST_CASE("optimizer_step: the composition of every rule") {
  for (const OptimizerStep& step : some_steps()) {
    CAPTURE(step.index());
    auto params = tensors(DType::f64, 1), want = tensors(DType::f64, 1);
    auto state = state_of(step, DType::f64), want_state = state_of(step, DType::f64);
    const auto grads = tensors(DType::f64, 20);
    BackendDefaults<Reference>::float_optimizer_step(std::span<HostHandle>(params),
                                                     std::span<const HostHandle>(grads),
                                                     std::span<HostHandle>(state), step);
    Reference::float_optimizer_step(want, grads, want_state, step);
    check_lists(params, want, 1e-12);
    check_lists(state, want_state, 1e-12);
  }
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
  Cpu::float_optimizer_step(params, grads, none, SgdStep{0.5, 0, 0, 0, false, true});
  Reference::float_optimizer_step(want, grads, none, SgdStep{0.5, 0, 0, 0, false, true});
  check_lists(params, want, 1e-6);
  CHECK(params[1]->version() > before);

  std::vector<HostHandle> plain = {random_tensor({5}, DType::f32, 5)};
  const std::vector<HostHandle> plain_grads = {random_tensor({5}, DType::f32, 6)};
  const uint32_t plain_before = plain[0]->version();
  Cpu::float_optimizer_step(plain, plain_grads, none, SgdStep{0.5, 0, 0, 0, false, true});
  CHECK(plain[0]->version() == plain_before + 1);

  Cpu::float_optimizer_step(none, none, none, SgdStep{});
  Cpu::float_optimizer_step(none, none, none, AdamStep{});
}

TEST_CASE("optimizer steps: the same bits at any number of threads") {
  check_deterministic([] {
    auto all = tensors(DType::f32, 1);
    for (const OptimizerStep& step : some_steps()) {
      auto params = tensors(DType::f32, 1);
      auto state = state_of(step, DType::f32);
      Cpu::float_optimizer_step(params, tensors(DType::f32, 20), state, step);
      all.insert(all.end(), params.begin(), params.end());
      all.insert(all.end(), state.begin(), state.end());
    }
    return all;
  });
}
