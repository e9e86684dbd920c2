// Modules without memory: built on "meta", moved there, filled from a state dict, and run.
#include <fstream>
#include <vector>

#include <doctest/doctest.h>

#include "kiln/kiln.h"

using namespace kiln;

namespace kiln::test {

// A decoder of the GPT family.
class Gpt : public nn::Module {
 public:
  Gpt(int64_t vocabulary, int64_t width, int64_t heads, int64_t depth, int64_t context,
      const nn::ParamOptions& options)
      : tokens(vocabulary, width, {}, options),
        positions(context, width, {}, options),
        norm(width, {}, options),
        head(width, vocabulary, false, options) {
    const nn::TransformerEncoderLayerOptions block{.dim_feedforward = 4 * width,
                                                   .dropout = 0.0,
                                                   .activation = "gelu",
                                                   .batch_first = true,
                                                   .norm_first = true};
    for (int64_t i = 0; i < depth; ++i) blocks.emplace_back(width, heads, block, options);
  }

  Tensor forward(const Tensor& index) {
    const int64_t length = index.size(1);
    const Device device = index.device();
    Tensor x = tokens.forward(index) + positions.forward(arange(length, {i64, device}));
    const Tensor mask = triu(full({length, length}, -1e30, {f32, device}), 1);
    for (nn::TransformerEncoderLayer& block : blocks) x = block.forward(x, mask, {}, true);
    return head.forward(norm.forward(x));
  }

  nn::Embedding tokens;
  nn::Embedding positions;
  std::vector<nn::TransformerEncoderLayer> blocks;
  nn::LayerNorm norm;
  nn::Linear head;
  KILN_MODULE(Gpt, tokens, positions, blocks, norm, head)
};

}  // namespace kiln::test

namespace {

using test::Gpt;

const Device kOnMeta("meta");

int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0;
  int64_t resident = 0;
  file >> total >> resident;
  return resident * 4096;
}

}  // namespace

TEST_CASE("meta: a GPT of 70 billion parameters, forward and backward, in less than 50 MiB") {
  const int64_t before = resident_bytes();
  reset_memory_stats();
  const size_t in_use = memory_stats().bytes_in_use;
  Gpt model(128000, 8192, 64, 86, 2048, {.dtype = bf16, .device = kOnMeta});
  int64_t parameters = 0;
  for (const auto& [name, parameter] : model.named_parameters()) {
    parameters += parameter.shape().numel();
  }
  CHECK(parameters > 70'000'000'000);

  const Tensor index = zeros({4, 2048}, {i64, kOnMeta});
  const Tensor logits = model.forward(index);
  CHECK(logits.shape() == Shape{4, 2048, 128000});
  CHECK(logits.dtype() == bf16);
  const Tensor loss = functional::cross_entropy(logits.flatten(0, 1), index.flatten());
  CHECK(loss.shape() == Shape{});
  const Gradients grads = loss.backward();
  for (const auto& [name, parameter] : model.named_parameters()) {
    INFO(name);
    const std::optional<Tensor> grad = grads.get(parameter);
    REQUIRE(grad.has_value());
    CHECK(grad->shape() == parameter.shape());
    CHECK(grad->device() == kOnMeta);
  }
  CHECK(memory_stats().peak_bytes_in_use - in_use < (50u << 20));
  CHECK(resident_bytes() - before < (50 << 20));
}

TEST_CASE("meta: to_empty takes a model there and back") {
  Gpt model(10, 8, 2, 1, 4, {});
  model.to_empty(kOnMeta);
  for (const auto& [name, parameter] : model.named_parameters()) {
    CHECK(parameter.device() == kOnMeta);
    CHECK(parameter.requires_grad());
  }
  CHECK(model.forward(zeros({2, 3}, {i64, kOnMeta})).shape() == Shape{2, 3, 10});
  CHECK_THROWS_AS(model.to(Device("cpu")), NotImplementedError);
  CHECK(model.named_parameters()[0].second.device() == kOnMeta);
  model.to_empty(Device("cpu"));
  for (const auto& [name, parameter] : model.named_parameters()) {
    Tensor values = parameter.detach();
    values.fill_(0.5);
  }
  CHECK(model.forward(zeros({2, 3}, {i64})).shape() == Shape{2, 3, 10});
}

TEST_CASE("meta: load_state_dict with assign gives a model values") {
  nn::Linear source(3, 2);
  nn::Linear model(3, 2, true, {.device = kOnMeta});
  CHECK((*model.weight).device() == kOnMeta);
  model.load_state_dict(source.state_dict(), true, true);
  CHECK((*model.weight).to_vector<float>() == (*source.weight).to_vector<float>());
  // Without assign a meta parameter stays one, and what has no values fills nothing.
  nn::Linear empty(3, 2, true, {.device = kOnMeta});
  empty.load_state_dict(source.state_dict());
  CHECK((*empty.weight).device() == kOnMeta);
  const std::vector<float> values = (*source.weight).to_vector<float>();
  CHECK_THROWS_AS(source.load_state_dict(empty.state_dict()), Error);
  CHECK((*source.weight).to_vector<float>() == values);
}
