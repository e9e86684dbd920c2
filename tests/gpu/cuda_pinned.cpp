// Pinned memory and copies that nobody waits for, on the CUDA driver that tests play: it does work
// as late as it can, and ends the process when pinned memory changes or goes before its copy is
// done.
#include <cstdlib>
#include <string>

#include <doctest/doctest.h>

#include "kiln/core/accelerator.h"
#include "kiln/kiln.h"
#include "kiln/tensor/interop.h"
#include "tests/gpu/cuda_part.h"

using namespace kiln;

namespace {

using test::Ended;
using test::has;
using test::say;

Ended run_pinned_part(const char* part, const std::string& settings = "") {
  return test::run_part("cuda pinned part", part, settings);
}

const char* word(bool value) { return value ? "yes" : "no"; }

Tensor numbers(int64_t n) { return arange(n, {.dtype = f32}); }

void run_pinned(const std::string& part) {
  if (part == "copies") {
    const Tensor plain = numbers(1000);
    const Tensor x = pin_memory(plain);
    say(concat("pinned ", word(is_pinned(x)), ", before ", word(is_pinned(plain)), ", equal ",
               word(x.equal(plain)), ", again ", word(pin_memory(x).is_same(x)), ", view ",
               word(is_pinned(x.slice(0, 5, 9)))));
    const Tensor there = to_non_blocking(x, "cuda");
    const accelerator::Event in = cuda::record_event();
    say(concat("in at once ", word(in.is_passed())));
    const Tensor back = to_non_blocking(there * 2.0 + 1.0, "cpu");
    const accelerator::Event out = cuda::record_event();
    say(concat("out at once ", word(out.is_passed()), ", result pinned ", word(is_pinned(back))));
    out.wait();
    say(concat("values ", word(back.equal(plain * 2.0 + 1.0))));
    // Into memory that is there.
    Tensor target = pin_memory(zeros({1000}, {.dtype = f32}));
    const uint32_t version = target.version();
    copy_non_blocking(target, there);
    const accelerator::Event over = cuda::record_event();
    say(concat("copy at once ", word(over.is_passed()), ", version ",
               word(target.version() > version)));
    cuda::synchronize();
    say(concat("copied ", word(target.equal(plain))));
    Tensor onto = zeros({1000}, {.dtype = f32, .device = "cuda"});
    cuda::synchronize();
    copy_non_blocking(onto, x);
    const accelerator::Event written = cuda::record_event();
    say(concat("onto at once ", word(written.is_passed())));
    say(concat("sum ", onto.sum().item<float>()));
  } else if (part == "kinds") {
    for (const DType dtype : {f64, f16, bf16, i64, i32, i16, i8, u8, bool_, c64}) {
      const Tensor plain = (numbers(60) - 7.0).to(dtype).reshape({3, 4, 5});
      const Tensor there = to_non_blocking(pin_memory(plain), "cuda");
      const Tensor back = to_non_blocking(there, "cpu");
      cuda::synchronize();
      say(concat("kind ", dtype, " ", word(back.equal(plain) && is_pinned(back))));
    }
    // Rows that are not neighbours: pinned they become so; as a view they are waited for.
    const Tensor turned = numbers(12).reshape({3, 4}).transpose(0, 1);
    const Tensor pinned = pin_memory(turned);
    say(concat("turned ", word(pinned.equal(turned) && pinned.is_contiguous())));
    const Tensor view = pinned.transpose(0, 1);
    say(concat("view ", word(to_non_blocking(view, "cuda").to("cpu").equal(view))));
    const Tensor there = to_non_blocking(pinned.slice(0, 1, 3), "cuda");
    const Tensor part_of = to_non_blocking(there.transpose(0, 1), "cpu");
    cuda::synchronize();
    say(concat("part ", word(part_of.equal(turned.slice(0, 1, 3).transpose(0, 1)))));
    say(concat("empty ",
               word(to_non_blocking(pin_memory(zeros({0, 3})), "cuda").shape() == Shape{0, 3})));
  } else if (part == "kept") {
    // Tensors go at once; their memory stays until the copies are done, and no other tensor has it.
    std::vector<Tensor> there, back;
    for (int i = 0; i < 6; ++i) {
      there.push_back(to_non_blocking(pin_memory(numbers(4096) + static_cast<double>(i)), "cuda"));
      to_non_blocking(there.back() * 2.0, "cpu");  // the result goes, too
    }
    say(concat("in use ", cuda::pinned_memory_stats().bytes_in_use >= 12 * 16384 ? "all" : "few"));
    for (int i = 0; i < 6; ++i) {
      say(concat("right ", word(there[static_cast<size_t>(i)].to("cpu").equal(
                               numbers(4096) + static_cast<double>(i)))));
    }
    cuda::synchronize();
    const MemoryStats stats = cuda::pinned_memory_stats();
    say(concat("after ", stats.bytes_in_use, ", cached ",
               stats.bytes_cached == 12 * 16384 ? "all" : "few", ", peak ",
               stats.peak_bytes_in_use == 12 * 16384 ? "all" : "few"));
    // The next blocks come from what is kept.
    const Tensor again = pin_memory(numbers(4096));
    say(concat("allocations ", cuda::pinned_memory_stats().allocations, ", of the driver ",
               cuda::pinned_memory_stats().system_allocations));
    cuda::empty_cache();
    say(concat("emptied ", cuda::pinned_memory_stats().bytes_cached));
    cuda::reset_memory_stats();
    say(concat("reset ", cuda::pinned_memory_stats().allocations));
  } else if (part == "gradient") {
    Tensor w = numbers(5).requires_grad_();
    const Tensor pinned = pin_memory(w);
    const Tensor there = to_non_blocking(pinned, "cuda");  // recorded, so it is waited for
    const Gradients grads = (there * there).sum().backward();
    say(concat("gradient ", word(grads.get(w)->equal(numbers(5) * 2.0))));
    nn::Linear layer(4, 3);
    const Tensor before = layer.weight->detach().clone();
    for (nn::Param<Tensor>* p : {&layer.weight, &layer.bias}) {
      interop::set_data(**p, pin_memory((*p)->detach()));
    }
    layer.to("cuda", /*non_blocking=*/true);
    const accelerator::Event moved = cuda::record_event();
    say(concat("module at once ", word(moved.is_passed())));
    say(concat("same ", word(layer.weight->detach().to("cpu").equal(before))));
  } else if (part == "changes") {
    const Tensor x = pin_memory(numbers(100));
    const Tensor there = to_non_blocking(x, "cuda");
    Tensor same = x;
    same.fill_(3.0);  // too early
    cuda::synchronize();
    say("not caught");
  } else if (part == "writes") {
    const Tensor there = ones({100}, {.dtype = f32, .device = "cuda"});
    Tensor back = to_non_blocking(there, "cpu");
    back.fill_(3.0);  // too early
    cuda::synchronize();
    say("not caught");
  } else if (part == "two") {
    // Pinned once for all devices of the runtime.
    const Tensor x = pin_memory(numbers(50), Device("cuda:1"));
    const Tensor y = to_non_blocking(x, "cuda:0") + 1.0;
    say(concat("two ", word(y.to("cpu").equal(numbers(50) + 1.0))));
    say(concat("of ", cuda::pinned_memory_stats(0).allocations, " ",
               cuda::pinned_memory_stats(1).allocations));
  } else if (part == "loader") {
    const auto rows =
        std::make_shared<data::TensorDataset>(numbers(40).reshape({10, 4}), arange(10));
    for (const int workers : {0, 2}) {
      float sum = 0;
      int pinned = 0;
      for (const auto& [x, y] :
           data::DataLoader(rows, {.batch_size = 4, .num_workers = workers, .pin_memory = true})) {
        pinned += is_pinned(x) && is_pinned(y);
        sum += to_non_blocking(x, "cuda").sum().item<float>();
      }
      say(concat("loader ", workers, ": ", pinned, " batches, sum ", sum));
    }
  } else if (part == "short") {
    try {
      pin_memory(numbers(100));
      say("nothing");
    } catch (const ValueError& error) {
      say(std::string(error.what()));
    }
  } else if (part == "short_back") {
    // What would go to pinned memory is waited for.
    const Tensor back = to_non_blocking(ones({3}, {.dtype = f32, .device = "cuda"}), "cpu");
    say(concat("back ", back.sum().item<float>(), ", pinned ", word(is_pinned(back))));
  } else if (part == "errors") {
    for (const char* device : {"cpu", "reference"}) {
      try {
        pin_memory(numbers(3), Device(device));
        say("nothing");
      } catch (const DeviceError& error) {
        say(std::string(error.what()));
      }
    }
    try {
      pin_memory(ones({3}, {.device = "cuda"}));
      say("nothing");
    } catch (const DeviceError& error) {
      say(std::string(error.what()));
    }
  }
}

}  // namespace

TEST_CASE("cuda pinned part" * doctest::skip()) {
  const char* part = std::getenv("KILN_CUDA_PART");
  if (part != nullptr) run_pinned(part);
}

TEST_CASE("cuda: copies from and to pinned memory are enqueued and return") {
  const Ended ended = run_pinned_part("copies");
  INFO(ended.text);
  CHECK(ended.status == 0);
  CHECK(has(ended, "said: pinned yes, before no, equal yes, again yes, view yes\n"));
  CHECK(has(ended, "said: in at once no\n"));
  CHECK(has(ended, "said: out at once no, result pinned yes\n"));
  CHECK(has(ended, "said: values yes\n"));
  CHECK(has(ended, "said: copy at once no, version yes\n"));
  CHECK(has(ended, "said: copied yes\n"));
  CHECK(has(ended, "said: onto at once no\n"));
  CHECK(has(ended, "said: sum 499500\n"));
}

TEST_CASE("cuda: pinned tensors of every dtype, views and empty ones") {
  const Ended ended = run_pinned_part("kinds");
  INFO(ended.text);
  CHECK(ended.status == 0);
  for (const char* dtype : {"float64", "float16", "bfloat16", "int64", "int32", "int16", "int8",
                            "uint8", "bool", "complex64"}) {
    CHECK(has(ended, concat("said: kind ", dtype, " yes\n").c_str()));
  }
  for (const char* what : {"turned", "view", "part", "empty"}) {
    CHECK(has(ended, concat("said: ", what, " yes\n").c_str()));
  }
}

TEST_CASE("cuda: pinned memory stays until its copies are done, then goes to the next tensor") {
  const Ended ended = run_pinned_part("kept");
  INFO(ended.text);
  CHECK(ended.status == 0);
  CHECK(has(ended, "said: in use all\n"));
  CHECK(!has(ended, "said: right no"));
  CHECK(has(ended, "said: after 0, cached all, peak all\n"));
  CHECK(has(ended, "said: allocations 13, of the driver 12\n"));
  CHECK(has(ended, "said: emptied 0\n"));
  CHECK(has(ended, "said: reset 0\n"));
}

TEST_CASE("cuda: gradients pass pinned memory, and modules move without waiting") {
  const Ended ended = run_pinned_part("gradient");
  INFO(ended.text);
  CHECK(ended.status == 0);
  CHECK(has(ended, "said: gradient yes\n"));
  CHECK(has(ended, "said: module at once no\n"));
  CHECK(has(ended, "said: same yes\n"));
}

// What the driver of the tests catches, so that the tests above say something.
TEST_CASE("cuda: pinned memory that changes before its copy is done is caught") {
  for (const auto& [part, why] :
       {std::pair("changes", "the source of a copy changed before the copy was done"),
        std::pair("writes", "the target of a copy was written to before the copy was done")}) {
    const Ended ended = run_pinned_part(part);
    INFO(ended.text);
    CHECK(ended.status != 0);
    CHECK(has(ended, why));
    CHECK(!has(ended, "not caught"));
  }
}

TEST_CASE("cuda: pinned memory is that of all devices") {
  const Ended ended = run_pinned_part("two", "devices=2");
  INFO(ended.text);
  CHECK(ended.status == 0);
  CHECK(has(ended, "said: two yes\n"));
  CHECK(has(ended, "said: of 0 1\n"));
}

TEST_CASE("cuda: batches come in pinned memory") {
  const Ended ended = run_pinned_part("loader");
  INFO(ended.text);
  CHECK(ended.status == 0);
  CHECK(has(ended, "said: loader 0: 3 batches, sum 780\n"));
  CHECK(has(ended, "said: loader 2: 3 batches, sum 780\n"));
}

TEST_CASE("cuda: where no memory can be pinned") {
  // The first three are the device's own staging memory.
  const Ended ended = run_pinned_part("short", "fail=cuMemHostAlloc:4:2");
  INFO(ended.text);
  CHECK(ended.status == 0);
  CHECK(
      has(ended,
          "said: pin_memory: the driver has no pinned memory left; got a request for 400 bytes\n"));
  const Ended back = run_pinned_part("short_back", "fail=cuMemHostAlloc:4:2");
  INFO(back.text);
  CHECK(back.status == 0);
  CHECK(has(back, "said: back 3, pinned no\n"));
  const Ended errors = run_pinned_part("errors");
  INFO(errors.text);
  CHECK(has(errors, "got cpu\n"));
  CHECK(has(errors,
            "said: pin_memory: only a GPU's driver has pinned memory; expected 'cuda' or 'opencl'; "
            "got reference\n"));
  CHECK(has(errors,
            "said: pin_memory: only the cpu's dense tensors can be pinned; got one on cuda\n"));
}
