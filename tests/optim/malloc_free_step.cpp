// A steady training step takes all its memory from Kiln's caches: it calls malloc not once.
#include <cstdlib>

#include <doctest/doctest.h>

#include "kiln/core/sanitizers.h"
#include "kiln/nn/linear.h"
#include "kiln/optim/adam.h"
#include "kiln/optim/sgd.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/nn/losses.h"
#include "kiln/tensor/ops.h"

// Sanitizers put their own malloc there.
#if defined(__GLIBC__) && !defined(KILN_ASAN) && !defined(__SANITIZE_THREAD__)

namespace {
thread_local int64_t mallocs = 0;
thread_local bool traps = false;
}  // namespace

// Every allocation of the program, operator new's among them, comes through here.
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

void* malloc(size_t bytes) {
  ++mallocs;
  if (traps) __builtin_trap();  // under a debugger: who asks?
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  ++mallocs;
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, size_t bytes) {
  ++mallocs;
  return __libc_realloc(memory, bytes);
}
void* memalign(size_t alignment, size_t bytes) {
  ++mallocs;
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
}

using namespace kiln;

namespace {

struct Mlp : nn::Module {
  nn::Linear fc1, fc2;
  KILN_MODULE(Mlp, fc1, fc2)
  Mlp(int64_t in, int64_t hidden, int64_t out) : fc1(in, hidden), fc2(hidden, out) {}
  Tensor forward(TensorArg x) { return fc2(relu(fc1(x))); }
};

// What `steps` steps ask malloc for, after as many that fill the caches.
template <class Step>
int64_t mallocs_of(Step step, int steps = 5) {
  for (int i = 0; i < steps; ++i) step();
  const int64_t before = mallocs;
  traps = std::getenv("KILN_TRAP_MALLOC") != nullptr;
  for (int i = 0; i < steps; ++i) step();
  traps = false;
  return mallocs - before;
}

}  // namespace

TEST_CASE("malloc is counted") {
  const int64_t before = mallocs;
  std::vector<int> some(3);
  CHECK(some.size() == 3);
  CHECK(mallocs == before + 1);
}

TEST_CASE("a training step of the tiny MLP calls no malloc") {
  Mlp model(64, 64, 1);
  optim::SGD optimizer(model.parameters(), {.lr = 1e-3});
  const Tensor x = randn({32, 64}), target = randn({32, 1});
  CHECK(mallocs_of([&] {
          optimizer.zero_grad();
          functional::mse_loss(model(x), target).backward_accumulate();
          optimizer.step();
        }) == 0);
}

TEST_CASE("a training step of the MLP with Adam calls no malloc") {
  Mlp model(784, 256, 10);
  optim::Adam optimizer(model.parameters(), {.lr = 1e-3});
  const Tensor x = randn({64, 784});
  const Tensor target = (rand({64}) * 10).to(i64);
  CHECK(mallocs_of([&] {
          optimizer.zero_grad();
          functional::cross_entropy(model(x), target).backward_accumulate();
          optimizer.step();
        }) == 0);
}

TEST_CASE("small ops call no malloc") {
  Tensor x = ones({1, 1}).requires_grad_();
  const Tensor w = ones({1, 1});
  CHECK(mallocs_of([&] { x + w; }) == 0);
  CHECK(mallocs_of([&] {
          Tensor y = x;
          for (int i = 0; i < 50; ++i) y = y * w + w;
          x.zero_grad();
          y.backward_accumulate();
        }) == 0);
}

#endif
