// Tensors whose values are exchanged while a thread reads them.
#include "kiln/tensor/exchange.h"

#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "kiln/kiln.h"
#include "kiln/tensor/interop.h"

using namespace kiln;
using interop::ReadSection;

namespace {

// A tensor over memory of its own that says when that memory goes.
struct Watched {
  explicit Watched(float value) : data(4, value) {}
  Tensor tensor() {
    return interop::from_blob(
        data.data(), {4}, {1}, f32,
        [](void* context) { static_cast<Watched*>(context)->gone = true; }, this);
  }
  std::vector<float> data;
  std::atomic<bool> gone{false};
};

template <class F>
void on_another_thread(F f) {
  std::thread(f).join();
}

}  // namespace

TEST_CASE("set_data outside of any section exchanges at once") {
  Watched before(1), after(2);
  Tensor x = before.tensor();
  interop::set_data(x, after.tensor());
  CHECK(before.gone);
  CHECK(x.sum().item<float>() == 8);
  CHECK_FALSE(after.gone);
}

TEST_CASE("a section goes on with what it reads, and then sees what is newest") {
  Watched before(1), after(2);
  Tensor x = before.tensor();
  {
    const ReadSection section;
    on_another_thread([&] { interop::set_data(x, after.tensor()); });
    CHECK(x.sum().item<float>() == 4);
    CHECK_FALSE(before.gone);
    on_another_thread([&] { CHECK(x.sum().item<float>() == 8); });
  }
  CHECK(before.gone);
  CHECK(x.sum().item<float>() == 8);
  CHECK(ReadSection::running() == 0);
}

TEST_CASE("shape, dtype and memory belong together in a section") {
  Tensor x = ones({3});
  const Tensor y = zeros({2, 5}, {.dtype = f64});
  {
    const ReadSection section;
    on_another_thread([&] { interop::set_data(x, y); });
    CHECK(x.shape() == Shape{3});
    CHECK(x.dtype() == f32);
    CHECK(x.add(x).sum().item<float>() == 6);
  }
  CHECK(x.shape() == Shape{2, 5});
  CHECK(x.dtype() == f64);
}

TEST_CASE("who exchanges in a section of its own sees what came of it") {
  Watched before(1), after(2);
  Tensor x = before.tensor();
  {
    const ReadSection section;
    interop::set_data(x, after.tensor());
    CHECK(x.sum().item<float>() == 8);
    CHECK_FALSE(before.gone);
  }
  CHECK(before.gone);
}

TEST_CASE("a section of the newest sees exchanges, and still keeps what was there") {
  Watched before(1), after(2);
  Tensor x = before.tensor();
  {
    const ReadSection outer;
    {
      const ReadSection inner(ReadSection::Sees::newest);
      on_another_thread([&] { interop::set_data(x, after.tensor()); });
      CHECK(x.sum().item<float>() == 8);
    }
    CHECK(x.sum().item<float>() == 4);
    CHECK_FALSE(before.gone);
  }
  CHECK(before.gone);
}

TEST_CASE("versions in between go as soon as no section can see them") {
  Watched first(1), second(2), third(3);
  Tensor x = first.tensor();
  auto old_section = std::make_unique<ReadSection>();
  on_another_thread([&] { interop::set_data(x, second.tensor()); });
  // Sections that overlap, so that there is never a moment without any.
  on_another_thread([&] {
    const ReadSection young;
    CHECK(x.sum().item<float>() == 8);
    interop::set_data(x, third.tensor());
  });
  CHECK(x.sum().item<float>() == 4);
  CHECK_FALSE(first.gone);
  old_section.reset();
  CHECK(first.gone);
  CHECK(second.gone);
  CHECK(x.sum().item<float>() == 12);
}

TEST_CASE("sections that never leave a gap do not keep old values") {
  Watched first(1), second(2);
  Tensor x = first.tensor();
  std::promise<void> begun, may_end;
  std::thread older([&] {
    const ReadSection section;
    begun.set_value();
    may_end.get_future().wait();
  });
  begun.get_future().wait();
  on_another_thread([&] { interop::set_data(x, second.tensor()); });
  {
    const ReadSection younger;
    may_end.set_value();
    older.join();
    CHECK(first.gone);
    CHECK_FALSE(second.gone);
    CHECK(x.sum().item<float>() == 8);
  }
  CHECK(x.sum().item<float>() == 8);
}

TEST_CASE("an exchanged leaf stays a leaf, with its gradient") {
  Tensor w = ones({3}).requires_grad_();
  {
    const ReadSection section;
    on_another_thread([&] { interop::set_data(w, full({3}, 2.0)); });
    (w * w).sum().backward_accumulate();
    CHECK(w.grad().sum().item<float>() == 6);
  }
  w.zero_grad();
  (w * w).sum().backward_accumulate();
  CHECK(w.grad().sum().item<float>() == 12);
  CHECK(w.is_leaf());
}

TEST_CASE("views taken in a section follow later writes") {
  Tensor x = zeros({4}).requires_grad_();
  Tensor y = x * 1;
  {
    const ReadSection section;
    on_another_thread([] {
      Tensor z = ones({2});
      interop::set_data(z, zeros({2}));
    });
    const Tensor view = y.narrow(0, 1, 2);
    y.mul_(3);
    CHECK(view.sum().item<float>() == 0);
    view.sum().backward_accumulate();
  }
  CHECK(x.grad().sum().item<float>() == 6);
}

TEST_CASE("share_memory_ and requires_grad_ leave a section what it reads") {
  Watched before(1);
  Tensor x = before.tensor();
  {
    const ReadSection section;
    on_another_thread([&] { x.share_memory_().requires_grad_(); });
    CHECK_FALSE(x.is_shared());
    CHECK_FALSE(x.requires_grad());
    CHECK_FALSE(before.gone);
  }
  CHECK(before.gone);
  CHECK(x.is_shared());
  CHECK(x.requires_grad());
}
