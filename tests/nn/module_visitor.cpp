// Burn's view of a module: visitors, mappers, devices, to_device, fork, valid.
#include "kiln/nn/module_visitor.h"

#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "tests/nn/models.h"
#include "tests/support/near.h"

using namespace kiln;
using kiln::nn::Linear;
using kiln::nn::Module;
using kiln::nn::Param;
using kiln::test::near;
using kiln::test::Net;

namespace {

using Names = std::vector<std::string>;

struct Kinds : Module {
  Linear fc{2, 2, false};
  Param<Tensor> table = Param<Tensor>::from_tensor(tensor({1, 2, 3}));
  Param<Tensor> mask = Param<Tensor>::from_tensor(tensor({true, false}));
  nn::Buffer mean{zeros({2})};
  KILN_MODULE(Kinds, fc, table, mask, mean)
  Tensor forward(const Tensor& x) { return fc(x); }
};

struct Tied : Module {
  Linear a{2, 2, false};
  Linear b{2, 2, false};
  KILN_MODULE(Tied, a, b)
};

class Recorder final : public nn::ModuleVisitor {
 public:
  void visit_float(std::string_view name, const Param<Tensor>&) override { note("float", name); }
  void visit_int(std::string_view name, const Param<Tensor>&) override { note("int", name); }
  void visit_bool(std::string_view name, const Param<Tensor>&) override { note("bool", name); }
  void visit_buffer(std::string_view name, const nn::Buffer&) override { note("buffer", name); }
  void enter_module(std::string_view name, std::string_view type) override {
    seen.push_back(concat("enter ", name, " ", type));
  }
  void exit_module(std::string_view name, std::string_view type) override {
    seen.push_back(concat("exit ", name, " ", type));
  }
  void note(const char* kind, std::string_view name) {
    seen.push_back(concat(kind, " ", path(name)));
  }
  Names seen;
};

// Doubles every float, adds one to every integer, inverts every bool.
class Change final : public nn::ModuleMapper {
 public:
  Param<Tensor> map_float(std::string_view name, Param<Tensor> param) override {
    paths.push_back(path(name));
    NoGradGuard no_grad;
    return std::move(param).map([](const Tensor& x) {
      Tensor out = (x * 2.0).detach();
      if (x.requires_grad()) out.requires_grad_();
      return out;
    });
  }
  Param<Tensor> map_int(std::string_view, Param<Tensor> param) override {
    return Param<Tensor>::from_mapped_value(param.id(), param.val() + 1, param.mapper());
  }
  Param<Tensor> map_bool(std::string_view, Param<Tensor> param) override {
    return std::move(param).map([](const Tensor& x) { return x.logical_not(); });
  }
  Names paths;
};

}  // namespace

TEST_CASE("visit: every parameter by kind, inside enter and exit, none initialized") {
  Kinds module;
  Recorder recorder;
  module.visit(recorder);
  CHECK(recorder.seen == Names{"int table", "bool mask", "buffer mean", "enter fc Linear",
                               "float fc.weight", "exit fc Linear"});
  CHECK(!module.fc.weight.is_initialized());
  Net net;
  Recorder nested;
  net.visit(nested);
  const auto at = std::find(nested.seen.begin(), nested.seen.end(), "enter layers Vec");
  REQUIRE(at != nested.seen.end());
  CHECK(at[1] == "enter 0 Linear");
  CHECK(at[2] == "float layers.0.weight");
  CHECK(nested.seen.back() == "exit head Sequential");
}

TEST_CASE("map: replaces every parameter, keeps ids and ties") {
  Kinds module;
  module.fc.load_state_dict({{"weight", tensor({{1.F, 2.F}, {3.F, 4.F}})}});
  const nn::ParamId id = module.fc.weight.id();
  const nn::ParamId table_id = module.table.id();
  Change change;
  CHECK(&module.map(change) == &module);
  CHECK(near(*module.fc.weight, {2, 4, 6, 8}));
  CHECK(module.fc.weight->requires_grad());
  CHECK(module.fc.weight.id() == id);
  CHECK(near(*module.table, {2, 3, 4}));
  CHECK(module.table.id() == table_id);
  CHECK(near(*module.mask, {0, 1}));
  CHECK(change.paths == Names{"fc.weight"});

  Tied tied;
  tied.b.weight = Param<Tensor>::initialized(nn::ParamId(), *tied.a.weight);
  tied.map(change);
  CHECK(tied.a.weight->is_same(*tied.b.weight));
  CHECK(tied.parameters().size() == 1);
}

TEST_CASE("collect_devices and devices") {
  Net net;
  CHECK(net.devices() == std::vector<Device>{Device(kCpu)});
  net.block.to(Device(kReference));
  CHECK(net.devices() == std::vector<Device>{Device(kCpu), Device(kReference)});
  CHECK(net.block.collect_devices({Device(kReference)}) == std::vector<Device>{Device(kReference)});
  CHECK(nn::ReLU().devices().empty());
  CHECK(!net.block.fc.weight.is_initialized());
}

TEST_CASE("to_device: is recorded, so that the first tensors get the gradients") {
  Linear layer(2, 1, false);
  const Tensor before = *layer.weight;
  layer.to_device(Device(kReference));
  CHECK(layer.weight->device() == Device(kReference));
  CHECK(!layer.weight->is_leaf());
  layer(ones({1, 2}, {.device = Device(kReference)})).sum().backward_accumulate();
  CHECK(near(before.grad(), {1, 1}));
  CHECK(before.grad().device() == Device(kCpu));
}

TEST_CASE("fork: leaves of their own on the device") {
  Linear layer(2, 1);
  layer.bias.set_require_grad(false);
  layer.materialize();
  const Tensor before = *layer.weight;
  layer.fork(Device(kReference));
  CHECK(layer.weight->is_leaf());
  CHECK(layer.weight->requires_grad());
  CHECK(!layer.bias->requires_grad());
  layer(ones({1, 2}, {.device = Device(kReference)})).sum().backward_accumulate();
  CHECK(!before.grad().defined());
  CHECK(near(layer.weight->grad(), {1, 1}));
  // On the same device too.
  const Tensor there = *layer.weight;
  layer.fork(Device(kReference));
  CHECK(!layer.weight->is_same(there));
  CHECK(!layer.weight->grad().defined());
  Linear lazy(2, 1);
  lazy.fork(Device(kReference));
  CHECK(!lazy.weight.is_initialized());
  CHECK(lazy.weight->device() == Device(kReference));
}

TEST_CASE("no_grad and num_params") {
  Net net;
  CHECK(&net.no_grad() == &net);
  for (const Tensor& param : net.parameters()) CHECK(!param.requires_grad());
  CHECK(net.num_params() == 58);
}

TEST_CASE("valid: without gradients, and back with each parameter's requirement") {
  Net net;
  net.conv.bias.set_require_grad(false);
  const std::unique_ptr<Net> valid = net.valid();
  for (const Tensor& param : valid->parameters()) CHECK(!param.requires_grad());
  CHECK(!valid->is_training());
  CHECK(!valid->head[0].is_training());
  CHECK(net.is_training());
  CHECK(net.conv.weight->requires_grad());
  CHECK(!(*valid)(ones({1, 1, 3, 3})).requires_grad());
  CHECK(valid->conv.weight->data_ptr<float>() == net.conv.weight->data_ptr<float>());
  CHECK(valid->steps->data_ptr<int64_t>() == net.steps->data_ptr<int64_t>());
  CHECK(valid->conv.weight.id() == net.conv.weight.id());

  // A copy of the copy remembers too.
  const std::unique_ptr<Net> back = valid->valid()->from_valid();
  CHECK(back->is_training());
  CHECK(back->conv.weight->requires_grad());
  CHECK(back->conv.weight->is_leaf());
  CHECK(!back->conv.bias->requires_grad());
  CHECK(back->scale->requires_grad());
  CHECK(!valid->conv.weight->requires_grad());
  // A model that never was valid() stays as it is.
  CHECK(!net.from_valid()->conv.bias->requires_grad());
}

TEST_CASE("valid: what is tied stays tied") {
  Tied tied;
  tied.b.weight = Param<Tensor>::initialized(nn::ParamId(), *tied.a.weight);
  const auto valid = tied.valid();
  CHECK(valid->a.weight->is_same(*valid->b.weight));
  const auto back = valid->from_valid();
  CHECK(back->a.weight->is_same(*back->b.weight));
  CHECK(back->b.weight->requires_grad());
}
