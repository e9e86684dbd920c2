#include "kiln/nn/multihead_attention.h"

#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "tests/support/near.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::nn::MultiheadAttention;
using Call = kiln::nn::MultiheadAttentionCall;
using kiln::test::inputs;
using kiln::test::message_of;
using kiln::test::near;
using kiln::test::pattern;
using kiln::test::weights;

namespace {

void fill(nn::Module& module) {
  const NoGradGuard no_grad;
  for (auto& [name, parameter] : module.named_parameters()) {
    parameter.copy_(weights(parameter.shape()));
  }
}

}  // namespace

// The expected numbers are PyTorch's, in double precision.
TEST_CASE("MultiheadAttention: self-attention, with and without weights") {
  MultiheadAttention layer(4, 2, {.batch_first = true}, {.dtype = f64});
  fill(layer);
  const Tensor x = inputs({2, 3, 4});
  const std::vector<double> expected = {
      -0.218828945595, 0.0276390201801, 0.155800056028,  0.217781293604,  -0.64297447148,
      0.322861538753,  -0.163087763799, 0.509674281191,  -0.172430415946, -0.00971246865999,
      0.162213059635,  0.177675039442,  -0.644133381083, 0.0877670737875, 0.259808509888,
      0.441708964759,  -0.642985340559, 0.0860070746897, 0.261476069564,  0.440468484813,
      -0.641969899848, 0.0844986784053, 0.263050373792,  0.439518952044};
  const auto [out, weights] = layer(x, x, x);
  CHECK(near(out, expected, 1e-9));
  CHECK(near(weights,
             {0.241863058387, 0.508365872849, 0.249771068764, 0.351570192984, 0.296802648417,
              0.351627158599, 0.225738965449, 0.540861157791, 0.23339987676, 0.460252348079,
              0.0703859680781, 0.469361683843, 0.41697528824, 0.151122922493, 0.431901789267,
              0.463713967711, 0.0623887370185, 0.473897295271},
             1e-9));
  const auto [fused, none] = layer(x, x, x, Call{.need_weights = false});
  CHECK(near(fused, expected, 1e-9));
  CHECK(!none.defined());
  // Length first, as is the default.
  MultiheadAttention other(4, 2, {}, {.dtype = f64});
  fill(other);
  const Tensor y = x.transpose(0, 1);
  CHECK(near(other(y, y, y).first.transpose(0, 1).contiguous(), expected, 1e-9));
}

TEST_CASE("MultiheadAttention: other keys and values, masks") {
  MultiheadAttention layer(4, 2, {.batch_first = true}, {.dtype = f64});
  fill(layer);
  const Tensor q = inputs({2, 3, 4}), k = inputs({2, 5, 4}) + 0.25, v = pattern({2, 5, 4}, 3, 7, 4);
  Tensor mask = zeros({3, 5}), padding = zeros({2, 5});
  mask.select(0, 0).select(0, 1).fill_(1);
  mask.select(0, 2).select(0, 4).fill_(1);
  padding.select(0, 1).select(0, 0).fill_(1);
  nn::MultiheadAttentionCall call{.key_padding_mask = padding.to(bool_),
                                  .attn_mask = mask.to(bool_),
                                  .average_attn_weights = false};
  const std::vector<double> expected = {
      -0.389882110603, 0.0149982864703, 0.329584629082,  0.226956222955,  -0.554991922915,
      0.0720367365374, 0.305340506636,  0.2868041999,    -0.543691578272, 0.0690429811269,
      0.359069625541,  0.277550848683,  -0.599570015246, 0.196719610078,  0.138059828763,
      0.426133715197,  -0.512823527453, 0.0902618317931, 0.235726407251,  0.299716174158,
      -0.632923860913, 0.226880947078,  0.107667571241,  0.459060639527};
  const auto [out, weights] = layer(q, k, v, call);
  CHECK(near(out, expected, 1e-9));
  CHECK(weights.shape() == Shape{2, 2, 3, 5});
  CHECK(near(weights,
             {0.147034061864,
              0,
              0.149590266675,
              0.551184760049,
              0.152190911413,
              0.244285781045,
              0.149440685381,
              0.244177844815,
              0.118025732483,
              0.244069956276,
              0.122318329201,
              0.265547228812,
              0.124334901886,
              0.487799540101,
              0,
              0.242481055857,
              0,
              0.254222877603,
              0.236762785134,
              0.266533281406,
              0.181872738299,
              0.204108965544,
              0.182033563673,
              0.249790201225,
              0.18219453126,
              0.161671814089,
              0.428207560543,
              0.170326565283,
              0.239794060085,
              0,
              0,
              0,
              0.503246911633,
              0.251669390096,
              0.245083698271,
              0,
              0.198688845022,
              0.404748629597,
              0.201786048252,
              0.194776477129,
              0,
              0.24644829681,
              0.503372307988,
              0.250179395202,
              0,
              0,
              0,
              0.706916700817,
              0.134362010445,
              0.158721288738,
              0,
              0.269017336879,
              0.260592014568,
              0.284799752675,
              0.185590895878,
              0,
              0.113138071363,
              0.77052956793,
              0.116332360707,
              0},
             1e-9));
  call.need_weights = false;
  CHECK(near(layer(q, k, v, call).first, expected, 1e-9));
  // One mask for each head of each sample.
  call.attn_mask = call.attn_mask.unsqueeze(0).expand({4, 3, 5}).contiguous();
  CHECK(near(layer(q, k, v, call).first, expected, 1e-9));
}

TEST_CASE("MultiheadAttention: widths of their own, no bias") {
  MultiheadAttention layer(4, 2, {.bias = false, .kdim = 3, .vdim = 2}, {.dtype = f64});
  fill(layer);
  CHECK(layer.state_dict().keys() == std::vector<std::string>{"q_proj_weight", "k_proj_weight",
                                                              "v_proj_weight", "out_proj.weight"});
  const Tensor out = layer(inputs({3, 2, 4}), inputs({5, 2, 3}), pattern({5, 2, 2}, 3, 7, 4)).first;
  CHECK(near(
      out.contiguous(),
      {0.030048264757,   -0.00909960418649, -0.0139233366389, -0.00335062401403, 0.0227317014853,
       0.0570017804695,  -0.0281207603816,  0.0448990740059,  0.0314022127732,   -0.00885141238298,
       -0.0141136306005, -0.00309048531821, 0.0258085324787,  0.0526603465294,   -0.0182478350307,
       0.0385765290069,  0.0326917907879,   -0.0086125568818, -0.0143073161939,  -0.00283214351049,
       0.0257953488579,  0.0526344081687,   -0.0175672469926, 0.0381958168628},
      1e-9));
}

TEST_CASE("MultiheadAttention: causal, without a batch") {
  MultiheadAttention layer(4, 2, {}, {.dtype = f64});
  fill(layer);
  const Tensor x = inputs({3, 4});
  const std::vector<double> expected = {-1.2025,          0.74,
                                        -0.4525,          0.94,
                                        -0.40087977255,   0.144703167542,
                                        -0.0456917746706, 0.327986574895,
                                        -0.172430415946,  -0.00971246865999,
                                        0.162213059635,   0.177675039442};
  CHECK(near(layer(x, x, x, Call{.need_weights = false, .is_causal = true}).first, expected, 1e-9));
  const auto [out, weights] = layer(x, x, x, Call{.is_causal = true});
  CHECK(near(out, expected, 1e-9));
  CHECK(weights.shape() == Shape{3, 3});
  CHECK(weights.select(0, 0).select(0, 1).item() == 0.0);
}

TEST_CASE("MultiheadAttention: parameters, gradients and what it refuses") {
  MultiheadAttention layer(8, 2);
  CHECK(layer.state_dict().keys() == std::vector<std::string>{"in_proj_weight", "in_proj_bias",
                                                              "out_proj.weight", "out_proj.bias"});
  CHECK(layer.in_proj_weight->shape() == Shape{24, 8});
  CHECK(layer.in_proj_bias->abs().max().item() == 0.0);
  CHECK(layer.out_proj.bias->abs().max().item() == 0.0);
  const Tensor x = randn({3, 2, 8});
  layer(x, x, x, Call{.need_weights = false}).first.sum().backward_accumulate();
  for (const auto& [name, parameter] : layer.named_parameters()) CHECK(parameter.grad().defined());
  CHECK(message_of<ValueError>([] { MultiheadAttention(6, 4); }).find("num_heads 4") !=
        std::string::npos);
  CHECK(message_of<ShapeError>([&] { layer(x, x.select(0, 0), x); }).find("key") !=
        std::string::npos);
  CHECK(message_of<ShapeError>([&] {
          layer(x, x, x, Call{.attn_mask = zeros({3, 4})});
        }).find("attn_mask") != std::string::npos);
  MultiheadAttention dropping(8, 2, {.dropout = 1.0});
  CHECK(dropping(x, x, x).first.abs().max().item() == 0.0);
  dropping.eval();
  CHECK(dropping(x, x, x).first.abs().max().item() > 0.0);
}
