// scaled_dot_product_attention. The expected numbers are PyTorch's, in double precision.
#include "kiln/tensor/nn/attention.h"

#include <limits>

#include "kiln/core/random.h"
#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::test;
using functional::scaled_dot_product_attention;

namespace {

// Element i is ((a i + 3) mod m - m / 2) / 4.
Tensor steps(const Shape& shape, int64_t a, int64_t m, TensorOptions options) {
  Doubles values;
  for (int64_t i = 0; i < shape.numel(); ++i) {
    values.push_back(static_cast<double>((a * i + 3) % m - m / 2) / 4.0);
  }
  return from_vector(values, shape).to(options.dtype.value_or(f64)).to(options.device);
}

struct Case {
  const char* name;
  Shape q, k, v;
  bool causal, gqa;
  std::optional<double> scale;
  Shape additive;  // shape of an additive mask
  bool masked;     // by the bool mask below
  Shape shape;     // of the result
  Doubles out, gq, gk, gv, gm;
};

const Case kCases[] = {
    {"plain",
     {1, 2, 3, 2},
     {1, 2, 4, 2},
     {1, 2, 4, 2},
     false,
     false,
     {},
     {},
     false,
     {1, 2, 3, 2},
     {-0.430831387285, 0.319168612715, -0.39204888055, 0.35795111945, -0.480168750401,
      0.269831249599, 0.558831508521, -0.33314717175, 0.210605670903, 0.0959810565645,
      0.245331458887, -0.090248594165},
     {0.0654775035671, 0.0622423531846, -0.112736649774, 0.0115710546331, 0.0769288927873,
      0.0546894856165, -0.0151724462281, 0.0436481792649, 0.0857439689275, -0.263693502865,
      -0.00542168737174, 0.0864454559243},
     {-0.0148948279402, -0.088689071628, -0.00201363694195, -0.0315784478349, -0.00321695203758,
      0.0299306819333, 0.0201254169197, 0.0903368375296, -0.013106212948, 0.0525121257288,
      0.0360207711336, 0.081327485721, 0.0546076624615, 0.105315698128, -0.077522220647,
      -0.239155309578},
     {0.0890949383478, -0.206959081164, 0.14146349414, -0.103965763919, 0.253810305427,
      -0.261071083446, 0.0156312620849, -0.428004071471, 0.195185755482, 0.0318934773346,
      0.174227596744, 0.107228057728, 0.0077706741911, 0.0763490063601, -0.127184026417,
      0.284529458577},
     {}},
    {"causal",
     {2, 3, 2},
     {2, 4, 2},
     {2, 4, 2},
     true,
     false,
     0.5,
     {},
     false,
     {2, 3, 2},
     {0, 0.75, -0.136684537996, 0.613315462004, -0.335586083787, 0.414413916213, 0.75, -0.25,
      0.59074230138, -0.40925769862, 0.426323937036, -0.573676062964},
     {0, 0, 0.0232327073577, 0.0232327073577, 0.0898558572536, -0.0669938660426, 0, 0,
      0.00541927878197, 0.00541927878197, 0, 0},
     {-0.0333194656157, -0.0232327073577, -0.0149419877062, 0.0232327073577, 0.0482614533219, 0, 0,
      0, -0.00180642626066, -0.00903213130328, 0.00180642626066, 0.00903213130328, 0, 0, 0, 0},
     {0.278764317706, -0.570230742914, 0.368003834387, 0.0105351991933, -0.146768152093,
      -0.440304456279, 0, 0, 0.377290042919, 0.213452258461, -0.259740751562, 0.418998450182,
      0.132450708643, -0.132450708643, 0, 0},
     {}},
    {"bool",
     {3, 2},
     {4, 2},
     {4, 2},
     false,
     false,
     {},
     {},
     true,
     {3, 2},
     {-0.473570626607, 0.276429373393, 0, 0, -0.0926099760076, 0.657390023992},
     {0.0592549960812, 0.0577266799238, 0, 0, -0.0309201242307, -0.0309201242307},
     {-0.011775678439, -0.0736278846715, 0.0412268323076, 0, -0.000235125562672, 0.000587813906679,
      -0.0292160283059, 0.0730400707648},
     {-0.157390023992, -0.648068740047, -0.0926099760076, -0.277829928023, 0, -0.0251627425777, 0,
      -0.298938589353},
     {}},
    {"additive",
     {2, 1, 3, 2},
     {1, 2, 4, 2},
     {2, 2, 4, 3},
     false,
     false,
     {},
     {2, 1, 3, 4},
     false,
     {2, 2, 3, 3},
     {-0.0908866839357, 0.414459501712,  -0.230603867495, -0.210002565367,  0.0339939033666,
      0.25068503365,    -0.480259878915, 0.184906450902,  0.321751774907,   0.278372366482,
      -0.450063962982,  0.0283723664823, 0.0208232786465, 0.411936990771,   -0.229176721353,
      -0.230259878915,  0.197203306212,  -0.480259878915, 0.0550362263258,  -0.403362835971,
      0.311411874928,   -0.40358550314,  0.112735420838,  0.209668412069,   -0.120098290255,
      0.146282221924,   -0.205195030829, 0.248749131202,  -0.0532868133475, -0.00125086879752,
      0.0563253441093,  0.0856522813407, -0.193674655891, 0.206449558177,   0.210903155112,
      -0.043550441823},
     {-0.126907027282, -0.225769677334, -0.0105263814452, 0.0589789197833, -0.0446297661715,
      0.113608041317, -0.0324868728091, 0.0140932881364, -0.346976064993, 0.136245374734,
      0.250953847733, 0.0196782184125},
     {0.0901519434631, -0.114445971532, -0.0987617393655, -0.101989381452, -0.120802650003,
      0.366791618806, 0.129412445905, -0.150356265822, -0.0992186296602, -0.0143213745777,
      -0.0394233673323, 0.187524946375, 0.134148439488, -0.161379755798, 0.0044935575047,
      -0.011823816},
     {0.0941075622924, -0.197734493031, 0.11082085392,    0.0965244102335,  -0.142187308567,
      -0.136245213016, 0.402101558094,  -0.133036175985,  -0.557891093624,  0.15726646938,
      -0.277042022417, 0.0833154527204, 0.341351602428,   0.279203501196,   -0.11610082434,
      0.0463021825748, 0.172770691638,  -0.049027677744,  -0.376454435592,  0.584138144539,
      0.122724193912,  -0.51119934941,  0.463887662627,   0.0424043081721,  -0.0656181779241,
      -0.40480029927,  0.171275492671,  -0.0487817698824, -0.487219719379,  0.443971894936,
      0.152321709093,  -0.359041019656, -0.182111450536,  -0.0379217612867, -0.248938961695,
      0.0668640629282, 0.230357209527,  0.0794617879076,  -0.287079997941,  0.381537490121,
      0.121085216422,  -0.270163188837, -0.17145918558,   0.312948230878,   -0.0763018180386,
      0.0595644859315, 0.236504764792,  -0.116454995183},
     {-0.116073158628,  0.184224098901,   0.0357938337408,  -0.103944774014,  -0.0149750120648,
      -0.0420734235966, -0.137986739682,  0.195035175343,   -0.0413551343429, -0.00264010246793,
      -0.145455112356,  0.189450349167,   -0.0290264045386, 0.0341531543998,  -0.0202690139528,
      0.0151422640916,  0.0541739077991,  0.14832272729,    -0.235946101833,  0.033449466744,
      -0.0824857002587, -0.0378378159408, 0.274933942452,   -0.154610426252}},
    {"gqa",
     {1, 4, 2, 2},
     {1, 2, 3, 2},
     {1, 2, 3, 2},
     false,
     true,
     {},
     {},
     false,
     {1, 4, 2, 2},
     {-0.131955614483, 0.618044385517, -0.344824375986, 0.405175624014, -0.371483662221,
      0.378516337779, -0.15440448365, 0.59559551635, 0.414315220414, -0.370277497, 0.166666666667,
      -0.25, -0.187072264588, -0.129722503, 0.109883674449, -0.227967405061},
     {0.00636192345623, -0.0269718971999, -0.121227540546, 0.0810343122778, 0.116391430145,
      -0.0857818939959, 0.000414290714021, 0.023294952126, 0.101033116409, 0.101033116409,
      -0.0773398041923, -0.0773398041923, 0.201789134194, 0.201789134194, -0.0438082004599,
      -0.0438082004599},
     {-0.0518825965975, -0.0484761623426, 0.00332210059154, -0.00574019746633, 0.0485604960059,
      0.054216359809, 0.229897762187, -0.0376520229199, -0.164909675189, -0.0326725012615,
      -0.0649880869982, 0.0703245241814},
     {0.311262675349, -0.377480692236, 0.405676216264, -0.211500775886, 0.283061108386,
      -0.411018531878, -0.431361502372, 0.121898599517, -0.257554492257, 0.0918601140871,
      -0.311084005371, 0.286241286396},
     {}},
};

}  // namespace

TEST_CASE("attention: values and gradients") {
  on_devices(kFloatTypes, [](Device device, DType dtype) {
    const TensorOptions options{dtype, device};
    const double tolerance = dtype == f64 ? 1e-11 : 16 * tolerance_of(dtype);
    for (const Case& c : kCases) {
      INFO(std::string(c.name));
      Tensor q = steps(c.q, 7, 11, options).requires_grad_();
      Tensor k = steps(c.k, 5, 13, options).requires_grad_();
      Tensor v = steps(c.v, 3, 7, options).requires_grad_();
      Tensor mask;
      if (c.masked) {
        mask = from_vector(std::vector<double>{1, 0, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0}, {3, 4})
                   .to(bool_)
                   .to(device);
      } else if (c.additive.rank() > 0) {
        mask = steps(c.additive, 3, 5, options).requires_grad_();
      }
      const auto attend = [&](const Tensor& m) {
        return scaled_dot_product_attention(q, k, v, m, 0.0, c.causal, c.scale, c.gqa);
      };
      const Tensor out = attend(mask);
      CHECK(mismatch(out, c.shape, c.out, tolerance) == "");
      const Tensor g = steps(c.shape, 5, 7, options);
      const auto check_gradients = [&](const Gradients& grads) {
        CHECK(mismatch(*grads.get(q), c.q, c.gq, tolerance) == "");
        CHECK(mismatch(*grads.get(k), c.k, c.gk, tolerance) == "");
        CHECK(mismatch(*grads.get(v), c.v, c.gv, tolerance) == "");
      };
      const Gradients grads = out.backward(g);
      check_gradients(grads);
      if (c.gm.empty()) continue;
      CHECK(mismatch(*grads.get(mask), c.additive, c.gm, tolerance) == "");
      check_gradients(attend(mask.detach()).backward(g));  // the fused gradient
    }
  });
}

TEST_CASE("attention: strided operands, and results that lie head beside head") {
  on_devices([](Device device) {
    const TensorOptions options{f64, device};
    // [N, L, 3, H, E], as one projection gives it.
    const Tensor qkv = steps({2, 5, 3, 2, 4}, 7, 23, options);
    const std::vector<Tensor> parts = qkv.permute({2, 0, 3, 1, 4}).unbind(0);
    const Tensor out = scaled_dot_product_attention(parts[0], parts[1], parts[2]);
    const Tensor want = scaled_dot_product_attention(parts[0].contiguous(), parts[1].contiguous(),
                                                     parts[2].contiguous());
    CHECK(mismatch(out, {2, 2, 5, 4}, want.to(f64).contiguous().to_vector<double>(), 1e-12) == "");
    const Tensor odd =
        scaled_dot_product_attention(scattered(parts[0]), scattered(parts[1]), scattered(parts[2]));
    CHECK(mismatch(odd, {2, 2, 5, 4}, want.contiguous().to_vector<double>(), 1e-12) == "");
  });
}

TEST_CASE("attention: dropout draws weights from the generator") {
  on_devices([](Device device) {
    const TensorOptions options{f64, device};
    const Tensor q = steps({1, 1, 8, 4}, 7, 11, options), k = steps({1, 1, 16, 4}, 5, 13, options);
    // With the identity as values, the result is the weights themselves.
    const Tensor v = eye(16, options).reshape({1, 1, 16, 16});
    const Tensor weights = scaled_dot_product_attention(q, k, v);
    manual_seed(7);
    const Tensor dropped = scaled_dot_product_attention(q, k, v, {}, 0.4);
    manual_seed(7);
    const Tensor want = functional::dropout(weights.contiguous(), 0.4);
    CHECK(mismatch(dropped, {1, 1, 8, 16}, want.to_vector<double>(), 1e-12) == "");
    const Tensor none = scaled_dot_product_attention(q, k, v, {}, 1.0);
    CHECK(mismatch(none, {1, 1, 8, 16}, Doubles(128, 0.0)) == "");
  });
}

TEST_CASE("attention: leading dims") {
  on_devices([](Device device) {
    const TensorOptions options{f64, device};
    const Tensor q = steps({2, 1, 2, 3, 4}, 7, 11, options);
    const Tensor k = steps({3, 1, 5, 4}, 5, 13, options);
    const Tensor v = steps({1, 2, 5, 2}, 3, 7, options);
    const Tensor mask = steps({3, 1, 1, 5}, 3, 5, options);
    const Tensor out = scaled_dot_product_attention(q, k, v, mask);
    const Tensor scores = matmul(q, k.transpose(-2, -1)) * 0.5 + mask;
    const Tensor want = matmul(scores.softmax(-1), v);
    CHECK(mismatch(out, {2, 3, 2, 3, 2}, want.contiguous().to_vector<double>(), 1e-12) == "");
    // No keys: nothing to see. No queries, no batch: nothing to give.
    const Tensor blind = scaled_dot_product_attention(q, k.narrow(2, 0, 0), v.narrow(2, 0, 0));
    CHECK(mismatch(blind, {2, 3, 2, 3, 2}, Doubles(72, 0.0)) == "");
    CHECK(scaled_dot_product_attention(q.narrow(3, 0, 0), k, v).shape() == Shape{2, 3, 2, 0, 2});
    CHECK(scaled_dot_product_attention(q.narrow(0, 0, 0), k, v).shape() == Shape{0, 3, 2, 3, 2});
  });
}

TEST_CASE("attention: what it refuses") {
  const Tensor q = ones({2, 4, 3, 8}), k = ones({2, 2, 5, 8}), v = ones({2, 2, 5, 6});
  const auto attend = [&](const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& m = {},
                          double p = 0, bool causal = false, bool gqa = false) {
    return [=] { return scaled_dot_product_attention(a, b, c, m, p, causal, {}, gqa); };
  };
  CHECK(error_lacks<ShapeError>(attend(q, k, v), {"[2, 4]", "[2, 2]"}) == "");
  CHECK_NOTHROW(attend(q, k, v, {}, 0, false, true)());
  CHECK(error_lacks<ShapeError>(attend(k, q, q, {}, 0, false, true),
                                {"enable_gqa", "query [2, 2, 5, 8]"}) == "");
  CHECK(error_lacks<ShapeError>(attend(q, v, v), {"query [2, 4, 3, 8]", "[.., S, E]"}) == "");
  CHECK(error_lacks<ShapeError>(attend(ones({8}), k, v), {"query [8]"}) == "");
  CHECK(error_lacks<DTypeError>(attend(q.to(f64), k, v), {"float64", "float32"}) == "");
  CHECK(error_lacks<DTypeError>(attend(q.to(i64), k.to(i64), v.to(i64)), {"int64"}) == "");
  const Tensor x = ones({2, 3, 4});
  CHECK(error_lacks<ValueError>(attend(x, x, x, ones({3, 3}), 0, true), {"is_causal"}) == "");
  CHECK(error_lacks<ValueError>(attend(x, x, x, {}, 1.5), {"1.5"}) == "");
  CHECK(error_lacks<ShapeError>(attend(x, x, x, ones({4, 3})), {"attn_mask", "[4, 3]"}) == "");
  CHECK(error_lacks<ShapeError>(attend(x, x, x, ones({5, 2, 3, 3})), {"attn_mask"}) == "");
  CHECK(error_lacks<DTypeError>(attend(x, x, x, ones({3, 3}).to(i64)), {"attn_mask", "int64"}) ==
        "");
}
