#include "kiln/nn/transformer_encoder_layer.h"

#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "tests/support/near.h"

using namespace kiln;
using kiln::nn::TransformerEncoderLayer;
using kiln::test::inputs;
using kiln::test::near;
using kiln::test::weights;

// The expected numbers are PyTorch's, in double precision.
TEST_CASE("TransformerEncoderLayer: values and gradients") {
  struct Form {
    bool norm_first;
    const char* activation;
    std::vector<double> out, gradient;
  };
  const Form forms[] = {
      {false,
       "relu",
       {-0.21324290747,  0.340143573624,   0.0645879603337,  1.09786805931,   0.0596295747689,
        0.323144873198,  -0.0386329539483, 1.1551850069,     -0.208424953013, 0.343862919628,
        0.0639414437876, 1.09177135739,    0.0808712466145,  0.240209422135,  -0.0887812581907,
        1.2583945458,    -0.235307811346,  0.313818069243,   0.0645463008958, 1.14151276779,
        0.0810628287869, 0.240256900703,   -0.0888501622311, 1.25829517145},
       {-0.0554164545974, -0.0235233265216,  -0.0314688279226,  0.0844575932222,
        -0.0274764134006, -0.0130961000442,  0.02184476002,     -0.00339539182665,
        0.0354335198956,  0.084489764754,    -0.0012865621213,  -0.118011804753,
        -0.0171252174655, 0.014788720873,    -0.00211549328351, 0.0121181697766,
        0.00846876916246, 0.059882327949,    -0.00624778828539, -0.0605019626743,
        0.0437014856359,  -0.00136520505004, -0.0373392632486,  0.00332879426027}},
      {true,
       "gelu",
       {-1.92616625363, -0.187624657886, 1.09647282926,   -0.486730697851, -0.101060579538,
        1.73413465824,  -0.429733273613, 1.19313969857,   -1.67616625363,  0.0623753421137,
        1.34647282926,  -0.236730697851, 0.0682416659573, -1.09248217176,  -0.380666551602,
        1.61226142353,  -1.33912801236,  0.394560223473,  1.32599780432,   0.142947261174,
        0.318241665957, -0.842482171761, -0.130666551602, 1.86226142353},
       {-0.477979439448,  0.188194234171,  -0.192716921764,  0.482502127041,    0.0998464043752,
        -0.266831900143,  0.424601443436,  -0.0576159476689, -0.367471499875,   0.301884658281,
        -0.0929441660885, -0.541468992318, 0.17433605872,    -0.199682624119,   0.511490051323,
        0.113856514077,   -0.300083797657, 0.396928058022,   0.000825838296051, -0.39767009866,
        0.283344725662,   -0.101599463642, -0.489231415399,  0.207486153378}}};
  for (const Form& form : forms) {
    TransformerEncoderLayer layer(4, 2,
                                  {.dim_feedforward = 6,
                                   .dropout = 0.0,
                                   .activation = form.activation,
                                   .batch_first = true,
                                   .norm_first = form.norm_first},
                                  {.dtype = f64});
    {
      const NoGradGuard no_grad;
      for (auto& [name, parameter] : layer.named_parameters()) {
        parameter.copy_(weights(parameter.shape()));
      }
    }
    Tensor x = inputs({2, 3, 4}).requires_grad_();
    const Tensor out = layer(x);
    CHECK(near(out, form.out, 1e-8, 1e-9));
    (out * weights({2, 3, 4})).sum().backward_accumulate();
    CHECK(near(x.grad(), form.gradient, 1e-8, 1e-9));
  }
}

TEST_CASE("TransformerEncoderLayer: hooks are shown each layer's own result") {
  TransformerEncoderLayer layer(4, 2, {.dim_feedforward = 6, .batch_first = true});
  layer.eval();
  const NoGradGuard no_grad;
  const Tensor x = inputs({2, 3, 4}).to(f32);
  const Tensor plain = layer(x);
  Tensor before, after, sum;
  auto first = layer.linear1.register_forward_hook(
      [&](nn::Module& m, std::span<const nn::HookValue> args, const nn::HookValue& out) {
        auto& linear = dynamic_cast<nn::Linear&>(m);
        before = functional::linear(args[0].tensor(), linear.weight, linear.bias);
        CHECK(out.tensor().equal(before));
      });
  CHECK(layer(x).equal(plain));
  CHECK(before.defined());
  first.remove();
  auto second = layer.linear2.register_forward_hook(
      [&](nn::Module& m, std::span<const nn::HookValue> args, const nn::HookValue& out) {
        auto& linear = dynamic_cast<nn::Linear&>(m);
        after = functional::linear(args[0].tensor(), linear.weight, linear.bias);
        CHECK(out.tensor().equal(after));
      });
  CHECK(layer(x).equal(plain));
  CHECK(after.defined());
}

TEST_CASE("TransformerEncoderLayer: keys, masks, evaluation, errors") {
  TransformerEncoderLayer layer(8, 2, {.dim_feedforward = 16});
  CHECK(layer.state_dict().keys() ==
        std::vector<std::string>{"self_attn.in_proj_weight", "self_attn.in_proj_bias",
                                 "self_attn.out_proj.weight", "self_attn.out_proj.bias",
                                 "linear1.weight", "linear1.bias", "linear2.weight", "linear2.bias",
                                 "norm1.weight", "norm1.bias", "norm2.weight", "norm2.bias"});
  layer.eval();
  const Tensor x = randn({5, 2, 8});
  // Causal: later inputs do not change earlier outputs.
  Tensor y = x.clone();
  y.select(0, 4).zero_();
  const Tensor a = layer(x, Tensor(), Tensor(), true), b = layer(y, Tensor(), Tensor(), true);
  CHECK(a.narrow(0, 0, 4).equal(b.narrow(0, 0, 4)));
  CHECK(!a.equal(b));
  CHECK(layer(x.select(1, 0)).shape() == Shape{5, 8});
  CHECK_THROWS_AS(TransformerEncoderLayer(8, 2, {.activation = "tanh"}), ValueError);
}
