// A Param as the module that it is in Burn: all that Burn's documentation gives it.
#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/io/recorder.h"
#include "kiln/nn/module_visitor.h"
#include "kiln/nn/nn.h"
#include "kiln/nn/record.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "tests/support/near.h"
#include "tests/support/temp_dir.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::nn::Param;
using kiln::nn::ParamId;
using kiln::test::message_of;
using kiln::test::near;
using kiln::test::TempDir;

namespace {

Param<Tensor> of(std::vector<double> values, DType dtype = f32) {
  return Param<Tensor>::from_tensor(tensor(values, {dtype}));
}

// A lazy parameter that counts how often it is made.
Param<Tensor> lazy(int* made, Shape shape = {2}) {
  return Param<Tensor>::uninitialized(
      ParamId(),
      [made, shape](const Device& device, bool require_grad) {
        ++*made;
        return ones(shape, {.dtype = f32, .device = device, .requires_grad = require_grad});
      },
      Device(), true, shape, f32);
}

struct Seen final : nn::ModuleVisitor {
  void visit_float(std::string_view name, const Param<Tensor>&) override { note("float", name); }
  void visit_int(std::string_view name, const Param<Tensor>&) override { note("int", name); }
  void visit_bool(std::string_view name, const Param<Tensor>&) override { note("bool", name); }
  void note(const char* kind, std::string_view name) { all += concat(kind, "'", name, "' "); }
  std::string all;
};

struct Double final : nn::ModuleMapper {
  Param<Tensor> map_float(std::string_view, Param<Tensor> param) override {
    return std::move(param).map([](const Tensor& x) { return (x * 2.0).detach(); });
  }
};

}  // namespace

TEST_CASE("Param as a module: visit and map") {
  int made = 0;
  Seen seen;
  lazy(&made).visit(seen);
  Param<Tensor>::from_tensor(tensor({1, 2})).visit(seen);
  Param<Tensor>::from_tensor(tensor({true})).visit(seen);
  Param<Tensor>().visit(seen);
  CHECK(seen.all == "float'' int'' bool'' ");
  CHECK(made == 0);
  Param<Tensor> x = of({1.0, 2.0});
  const ParamId id = x.id();
  Double twice;
  CHECK(near(*x.map(twice), {2.0, 4.0}));
  CHECK(x.id() == id);
}

TEST_CASE("Param as a module: into_record and load_record") {
  Param<Tensor> source = of({1.0, 2.0}, f64).save_mapper([](const Tensor& x) { return x + 1.0; });
  const Param<Tensor> record = source.into_record();
  CHECK(record.id() == source.id());
  CHECK(near(*record, {2.0, 3.0}));

  Param<Tensor> target = of({0.0, 0.0}).load_mapper([](const Tensor& x) { return x * 10.0; });
  const Tensor held = *target;
  target.load_record(record);
  CHECK(target->is_same(held));  // whoever trains it sees the values
  CHECK(near(held, {20.0, 30.0}));
  CHECK(target->dtype() == f32);
  CHECK(target->requires_grad());
  CHECK(target.id() == source.id());

  int made = 0;
  Param<Tensor> waiting = lazy(&made);
  waiting.load_record(record);
  CHECK(made == 0);
  CHECK(near(*waiting, {2.0, 3.0}));
  CHECK(waiting->dtype() == f32);
  CHECK(waiting->requires_grad());
  CHECK(message_of<ShapeError>([&] { waiting.load_record(of({1.0})); }) ==
        "Param::load_record: the record has another shape; got [1]; expected [2]");
}

TEST_CASE("Param as a module: devices, to_device, fork") {
  const Device reference(kReference);
  Param<Tensor> x = of({1.0, 2.0});
  CHECK(x.devices() == std::vector<Device>{Device()});
  CHECK(x.collect_devices({reference}) == std::vector<Device>{reference, Device()});
  CHECK(x.collect_devices({Device()}).size() == 1);
  const Tensor before = *x;
  x.to_device(reference);  // recorded: the first tensor gets the gradient
  CHECK(x->device() == reference);
  CHECK(near(*before.grad((*x * 3.0).sum().backward()), {3.0, 3.0}));
  x.fork(Device());
  CHECK(x->device() == Device());
  CHECK(x->is_leaf());
  CHECK(x->requires_grad());
  int made = 0;
  Param<Tensor> waiting = lazy(&made);
  waiting.to_device(reference).fork(reference);
  CHECK(made == 0);
  CHECK(waiting->device() == reference);
}

TEST_CASE("Param as a module: no_grad, num_params, valid") {
  int made = 0;
  const Param<Tensor> waiting = lazy(&made, {3, 4}).no_grad();
  CHECK(waiting.num_params() == 12);
  CHECK(Param<Tensor>().num_params() == 0);
  CHECK(made == 0);
  CHECK(!waiting->requires_grad());

  const Param<Tensor> x = of({1.0, 2.0});
  const Param<Tensor> inner = x.valid();
  CHECK(!inner->requires_grad());
  CHECK(x->requires_grad());
  CHECK(inner->data_ptr<float>() == x->data_ptr<float>());
  const Param<Tensor> back = inner.from_valid();
  CHECK(back->requires_grad());
  CHECK(!of({1.0}).no_grad().valid().from_valid()->requires_grad());
}

TEST_CASE("Param as a module: record items, float, int and bool") {
  const Param<Tensor> x = of({1.5, -2.0}, f64);
  const nn::RecordItem item = x.into_item<nn::HalfPrecisionSettings>();
  REQUIRE(item.entries.size() == 1);
  CHECK(item.entries[0].data.dtype() == f16);
  const Param<Tensor> back = Param<Tensor>::from_item(item, Device(kReference));
  CHECK(back.id() == x.id());
  CHECK(back->device() == Device(kReference));
  CHECK(near(*back, {1.5, -2.0}));
  for (const Tensor& values : {tensor({1, 2, 3}), tensor({true, false})}) {
    const Param<Tensor> kind = Param<Tensor>::from_tensor(values);
    const auto other = Param<Tensor>::from_item(kind.into_item<nn::FullPrecisionSettings>());
    CHECK(near(*other, kind->to_data().to_doubles()));
  }
  CHECK(message_of<ValueError>([] {
          Param<Tensor>::from_item(
              nn::Linear(2, 2).into_record().into_item<nn::FullPrecisionSettings>());
        }) ==
        "Param::from_item: expected the record of one parameter; got 2 tensors, the first of "
        "them 'weight'");
}

TEST_CASE("Param as a module: save_file and load_file") {
  const TempDir dir;
  const Param<Tensor> x = of({1.0, 2.0});
  const io::NamedMpkFileRecorder<> mpk;
  const io::SafetensorsRecorder<> safetensors;
  for (const nn::Recorder* recorder :
       {static_cast<const nn::Recorder*>(&mpk), static_cast<const nn::Recorder*>(&safetensors)}) {
    x.save_file(dir.path("x"), *recorder);
    int made = 0;
    Param<Tensor> loaded = lazy(&made);
    loaded.load_file(dir.path("x"), *recorder, Device(kReference));
    CHECK(made == 0);
    CHECK(loaded->equal(x->to(Device(kReference))));
    CHECK(loaded.id() == x.id());
    Param<Tensor> wrong = of({1.0});
    CHECK_THROWS_AS(wrong.load_file(dir.path("x"), *recorder), ShapeError);
    CHECK_THROWS_AS(wrong.load_file(dir.path("nothing"), *recorder), IoError);
  }
}
