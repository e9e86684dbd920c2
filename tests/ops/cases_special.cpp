// torch.special.
#include "tests/ops/case.h"

namespace kiln::ops {

namespace {

const Shape kShape = {3, 4};
const Shape kBig = {1024, 1024};

}  // namespace

KILN_OP_CASES(special) {
  namespace sp = special;
  const auto unary = [](const char* name, Tensor (*f)(TensorArg), double low, double high,
                        DTypes dtypes = kDoubles) -> Case& {
    const std::string call = "torch.special." + std::string(name) + "(a)";
    Case& edges =
        op("special." + std::string(name), call, [f](const Tensors& x) { return f(x[0]); },
           {values({0, 1, -1, 2.5, -3.25, 0.125, 8, 9.5, 17, INFINITY, -INFINITY, NAN})})
            .dtypes(kDoubles)
            .no_gradient("edges of the domain");
    if (std::string(name) == "sinc") edges.no_peer("0 at infinity, the limit, where it gives NaN");
    return op("special." + std::string(name), call, [f](const Tensors& x) { return f(x[0]); },
              {real(kShape, low, high)})
        .dtypes(std::move(dtypes))
        .big({real(kBig, low, high)});
  };
  unary("erf", sp::erf, -2, 2, kFloats);
  unary("erfc", sp::erfc, -2, 2, kFloats);
  unary("erfinv", sp::erfinv, -0.9, 0.9, kFloats);
  unary("gammaln", sp::gammaln, 0.2, 6, kFloats);
  unary("digamma", sp::digamma, 0.2, 6, kFloats);
  unary("psi", sp::psi, 0.2, 6, kFloats);
  unary("i0", sp::i0, -9, 9, kFloats);
  unary("i1", sp::i1, -9, 9);
  unary("i1e", sp::i1e, -9, 9);
  unary("expit", sp::expit, -4, 4, kFloats);
  unary("exp2", sp::exp2, -4, 4, kFloats);
  unary("expm1", sp::expm1, -2, 2, kFloats);
  unary("log1p", sp::log1p, -0.5, 4, kFloats);
  unary("sinc", sp::sinc, -3, 3, kFloats);
  op("special.logit", "torch.special.logit(a, eps=0.1)",
     [](const Tensors& x) { return sp::logit(x[0], 0.1); }, {real(kShape, 0.2, 0.8)});
  op("special.polygamma", "torch.special.polygamma(1, a)",
     [](const Tensors& x) { return sp::polygamma(1, x[0]); }, {real(kShape, 0.5, 4)});
  op("special.multigammaln", "torch.special.multigammaln(a, 2)",
     [](const Tensors& x) { return sp::multigammaln(x[0], 2); }, {real(kShape, 1, 4)})
      .dtypes(kDoubles);
  op("special.round", "torch.special.round(a, decimals=1)",
     [](const Tensors& x) { return sp::round(x[0], 1); }, {real(kShape)})
      .dtypes(kDoubles)
      .no_gradient();
  op("special.softmax", "torch.special.softmax(a, 1)",
     [](const Tensors& x) { return sp::softmax(x[0], 1); }, {real(kShape)});
  op("special.log_softmax", "torch.special.log_softmax(a, 1)",
     [](const Tensors& x) { return sp::log_softmax(x[0], 1); }, {real(kShape)});
  op("special.logsumexp", "torch.special.logsumexp(a, 1)",
     [](const Tensors& x) { return sp::logsumexp(x[0], {1}); }, {real(kShape)});
  op("special.xlogy", "torch.special.xlogy(a, b)",
     [](const Tensors& x) { return sp::xlogy(x[0], x[1]); }, {real(kShape), real({4}, 0.5, 3)});
  op("special.xlog1py", "torch.special.xlog1py(a, b)",
     [](const Tensors& x) { return sp::xlog1py(x[0], x[1]); }, {real(kShape), real({4}, -0.5, 3)})
      .big({real(kBig), real(kBig, -0.5, 3)});
  op("special.xlog1py", "torch.special.xlog1py(a, 2)",
     [](const Tensors& x) { return sp::xlog1py(x[0], 2); }, {real(kShape)});
  op("special.xlog1py", "torch.special.xlog1py(2.0, a)",
     [](const Tensors& x) { return sp::xlog1py(2.0, x[0]); }, {real(kShape, -0.5, 2)});
  op("special.zeta", "torch.special.zeta(a, b)",
     [](const Tensors& x) { return sp::zeta(x[0], x[1]); },
     {constant(kShape, 1.5, 6), real({4}, 0.5, 3)})
      .dtypes(kDoubles)
      .big({constant(kBig, 1.5, 6), real(kBig, 0.5, 3)});
  op("special.gammainc", "torch.special.gammainc(a, b)",
     [](const Tensors& x) { return sp::gammainc(x[0], x[1]); },
     {constant(kShape, 0.5, 30), real({4}, 0.5, 30)})
      .dtypes(kDoubles);
  op("special.gammaincc", "torch.special.gammaincc(a, b)",
     [](const Tensors& x) { return sp::gammaincc(x[0], x[1]); },
     {constant(kShape, 0.5, 30), real({4}, 0.5, 30)})
      .dtypes(kDoubles);
}

// PyTorch has no derivatives of these.
KILN_OP_CASES(bessel) {
  namespace sp = special;
  const auto bessel = [](const char* name, Tensor (*f)(TensorArg), double low, double high) {
    for (const bool compared : {true, false}) {
      Case& c = op("special." + std::string(name), "torch.special." + std::string(name) + "(a)",
                   [f](const Tensors& x) { return f(x[0]); }, {real(kShape, low, high)});
      // Some take microseconds for a number.
      c.dtypes(kDoubles).big({real({128, 512}, low, high)});
      if (compared) {
        c.no_gradient("compared without PyTorch in the next case");
      } else {
        c.no_peer("its derivative is not implemented there");
      }
    }
  };
  bessel("modified_bessel_i0", sp::modified_bessel_i0, -5, 5);
  bessel("modified_bessel_i1", sp::modified_bessel_i1, -5, 5);
  bessel("spherical_bessel_j0", sp::spherical_bessel_j0, -9, 9);
}

}  // namespace kiln::ops
