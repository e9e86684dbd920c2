#include "kiln/nn/record.h"

#include <doctest/doctest.h>

#include "kiln/core/allocator.h"
#include "kiln/core/error.h"
#include "kiln/optim/optim.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "tests/nn/models.h"
#include "tests/support/near.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::nn::Linear;
using kiln::nn::Record;
using kiln::nn::RecordItem;
using kiln::test::kNetKeys;
using kiln::test::message_of;
using kiln::test::near;
using kiln::test::Net;

TEST_CASE("into_record: values, buffers and ids in the order of the state dict") {
  Net net;
  const Record record = net.into_record();
  std::vector<std::string> paths;
  for (const auto& entry : record.entries()) paths.push_back(entry.path);
  CHECK(paths == kNetKeys);
  CHECK(record.find("conv.weight")->id == net.conv.weight.id());
  CHECK(!record.find("steps")->id.has_value());
  CHECK(!record.find("conv.weight")->value.requires_grad());
  CHECK(record.find("scratch") == nullptr);
}

TEST_CASE("load_record: values and ids go over; the module's tensors stay the same objects") {
  Net source;
  Net target;
  const Tensor handle = *target.conv.weight;
  CHECK(source.conv.weight.id() != target.conv.weight.id());
  source.steps->fill_(3);
  target.load_record(source.into_record());
  CHECK(target.conv.weight->is_same(handle));
  CHECK(handle.equal(*source.conv.weight));
  CHECK(target.conv.weight.id() == source.conv.weight.id());
  CHECK(target.steps->item<int64_t>() == 3);
  // The module does not hold the record's memory.
  source.conv.weight->detach().fill_(9.0);
  CHECK(!target.conv.weight->equal(*source.conv.weight));
}

TEST_CASE("load_record: a lazy module takes the values without drawing weights") {
  const Record record = Linear(256, 256).into_record();
  manual_seed(3);
  const uint64_t before = default_generator().state().offset;
  Linear lazy(256, 256);
  lazy.load_record(record);
  CHECK(default_generator().state().offset == before);
  CHECK(lazy.weight->equal(record.find("weight")->value));
  CHECK(lazy.weight->requires_grad());
  CHECK(!lazy.weight->is_same(record.find("weight")->value));
}

TEST_CASE("load_record: a lazy module allocates the values and nothing more") {
  const Record record = Linear(512, 512, false).into_record();
  constexpr size_t kBytes = 512 * 512 * 4;
  Linear lazy(512, 512, false);
  reset_memory_stats();
  const size_t before = memory_stats().bytes_in_use;
  lazy.load_record(record);
  const size_t slack = kBytes / 8;  // the allocator's size classes; random weights would double it
  CHECK(memory_stats().bytes_in_use - before <= kBytes + slack);
  CHECK(memory_stats().peak_bytes_in_use - before <= kBytes + slack);
}

TEST_CASE("records go through the save and the load mapper") {
  Linear source(2, 2);
  source.weight.replace(tensor({{1.0, 2.0}, {3.0, 4.0}}, {f32}));
  source.weight.save_mapper([](Tensor x) { return x * 10; });
  const Record record = source.into_record();
  CHECK(near(record.find("weight")->value, {10, 20, 30, 40}));
  Linear target(2, 2);
  target.weight.load_mapper([](Tensor x) { return x + 1; });
  target.load_record(record);
  CHECK(near(*target.weight, {11, 21, 31, 41}));
}

TEST_CASE("load_record: what does not fit is listed, and nothing changes") {
  Net net;
  const Tensor before = net.conv.weight->detach().clone();
  const std::string message =
      message_of<RuntimeError>([&] { net.load_record(Linear(2, 2).into_record()); });
  CHECK(message.find("Missing key(s)") != std::string::npos);
  CHECK(message.find("conv.weight") != std::string::npos);
  CHECK(message.find("Unexpected key(s)") != std::string::npos);
  CHECK(net.conv.weight->equal(before));
  CHECK(message_of<RuntimeError>([] {
          Linear(3, 2).load_record(Linear(2, 2).into_record());
        }).find("size mismatch for weight") != std::string::npos);
}

namespace {

struct Counting : nn::Module {
  Linear fc{1, 1};
  int64_t calls = 0;
  std::string label;
  bool broken = false;
  KILN_MODULE(Counting, fc)
  std::any get_extra_state() const override {
    if (broken) return std::vector<int>{1};
    return concat(calls, ' ', label);
  }
  void set_extra_state(const std::any& state) override {
    const auto text = std::any_cast<std::string>(state);
    calls = std::stoll(text);
    label = text.substr(text.find(' ') + 1);
  }
};

}  // namespace

TEST_CASE("records hold extra state: numbers and words of a module's own") {
  Counting source;
  source.calls = 12;
  source.label = "a b";
  const Record record = source.into_record();
  CHECK(record.value<std::string>("_extra_state") == "12 a b");
  Counting target;
  target.load_record(Record::from_item(record.into_item<nn::FullPrecisionSettings>()));
  CHECK(target.calls == 12);
  CHECK(target.label == "a b");
  Record without;
  without.merge("x", record);
  CHECK_THROWS_AS(target.load_record(without.part("y")), RuntimeError);
  source.broken = true;
  CHECK(message_of<ValueError>([&] { source.into_record(); }).find("'_extra_state'") !=
        std::string::npos);
}

TEST_CASE("into_item: the dtypes of the settings") {
  Record record;
  record.add("w", nn::ParamId(7), tensor({0.1, -2.5}, {f32}));
  record.add("steps", std::nullopt, tensor({70000}, {i32}));
  record.add("mask", std::nullopt, tensor({true, false}));
  record.add("q", std::nullopt, tensor({-3, 4}, {i8}));

  const RecordItem full = record.into_item<nn::FullPrecisionSettings>();
  CHECK(full.entries[0].data.dtype() == f32);
  CHECK(full.entries[1].data.dtype() == i32);
  CHECK(full.entries[2].data.dtype() == bool_);
  CHECK(full.entries[3].data.dtype() == i8);
  CHECK(full.entries[0].id == nn::ParamId(7));

  const RecordItem wide = record.into_item<nn::DoublePrecisionSettings>();
  CHECK(wide.entries[0].data.dtype() == f64);
  CHECK(wide.entries[0].data.item(0) == static_cast<double>(0.1f));
  CHECK(wide.entries[1].data.dtype() == i32);  // nothing to narrow

  // 70000 is no int16: saving must not make another number of it.
  const std::string message =
      message_of<ValueError>([&] { record.into_item<nn::HalfPrecisionSettings>(); });
  CHECK(message.find("'steps'") != std::string::npos);
  CHECK(message.find("70000") != std::string::npos);
  CHECK(message.find("HalfPrecisionSettings") != std::string::npos);

  Record small;
  small.add("w", std::nullopt, tensor({0.1, -2.5}, {f32}));
  small.add("n", std::nullopt, tensor({-300}, {i64}));
  const RecordItem half = small.into_item<nn::HalfPrecisionSettings>();
  CHECK(half.entries[0].data.dtype() == f16);
  CHECK(half.entries[0].data.item(0) == 0.0999755859375);  // float16(0.1), by NumPy
  CHECK(half.entries[1].data.dtype() == i16);
  CHECK(half.entries[1].data.item(0) == -300);

  Record large;
  large.add("w", std::nullopt, tensor({70000.0}, {f32}));
  CHECK_THROWS_AS(large.into_item<nn::HalfPrecisionSettings>(), ValueError);
  Record infinite;
  infinite.add("w", std::nullopt, kiln::full({1}, INFINITY));
  CHECK(std::isinf(infinite.into_item<nn::HalfPrecisionSettings>().entries[0].data.item(0)));
}

TEST_CASE("from_item: a module of any dtype takes an item of any settings") {
  Linear source(3, 2);
  Linear target(3, 2);
  target.to(f64);
  target.load_record(
      Record::from_item(source.into_record().into_item<nn::HalfPrecisionSettings>()));
  CHECK(target.weight->dtype() == f64);
  CHECK(target.weight->to(f32).allclose(*source.weight, 1e-3, 1e-4));
}

TEST_CASE("Record: values of its own") {
  Record record;
  record.set_value("epoch", 7);
  record.set_value("loss", 0.25);
  record.set_value("best", true);
  record.set_value("name", "run 3");
  CHECK(record.value<int>("epoch") == 7);
  CHECK(record.value<double>("epoch") == 7.0);
  CHECK(record.value<double>("loss") == 0.25);
  CHECK(record.value<bool>("best"));
  CHECK(record.value<std::string>("name") == "run 3");
  CHECK(message_of<ValueError>([&] { record.value<int>("none"); }).find("'none'") !=
        std::string::npos);
  const std::string message = message_of<ValueError>([&] { record.value<int>("loss"); });
  CHECK(message.find("got 0.25; expected an integer") != std::string::npos);
  record.set_value("big", int64_t{1} << 40);
  CHECK_THROWS_AS(record.value<int32_t>("big"), ValueError);
  const auto item = record.into_item<nn::FullPrecisionSettings>();
  CHECK(Record::from_item(item).value<int64_t>("big") == int64_t{1} << 40);
}

TEST_CASE("Record: model and optimizer in one") {
  Linear model(2, 2);
  optim::Adam adam(model.parameters(), {.lr = 0.5});
  model(ones({1, 2})).sum().backward_accumulate();
  adam.step();

  Record checkpoint;
  checkpoint.merge("model", model.into_record());
  checkpoint.merge("optimizer", adam.into_record());
  CHECK_THROWS_AS(checkpoint.merge("model", model.into_record()), ValueError);

  Linear other(2, 2);
  other.load_record(checkpoint.part("model"));
  optim::Adam resumed(other.parameters());
  resumed.load_record(checkpoint.part("optimizer"));
  CHECK(resumed.param_groups()[0].lr == 0.5);
  for (Linear* m : {&model, &other}) m->zero_grad();
  model(ones({1, 2})).sum().backward_accumulate();
  other(ones({1, 2})).sum().backward_accumulate();
  adam.step();
  resumed.step();
  CHECK(other.weight->equal(*model.weight));
  CHECK_THROWS_AS(resumed.load_record(checkpoint.part("model")), ValueError);
}
