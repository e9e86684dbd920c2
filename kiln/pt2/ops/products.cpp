// Products of matrices and attention.
#include "kiln/tensor/linalg/products.h"

#include <cmath>

#include "kiln/nn/functional.h"
#include "kiln/pt2/ops/forms.h"
#include "kiln/tensor/linalg/linalg.h"

namespace kiln::pt2 {

namespace {

void matmul_of(Call& c) { c.out(c.x().matmul(c.t("other"))); }
void mm_of(Call& c) { c.out(kiln::mm(c.x(), c.t("mat2"))); }
void bmm_of(Call& c) { c.out(kiln::bmm(c.x(), c.t("mat2"))); }
void mv_of(Call& c) { c.out(kiln::mv(c.x(), c.t("vec"))); }
void dot_of(Call& c) { c.out(kiln::dot(c.x(), c.t("tensor"))); }
void vdot_of(Call& c) { c.out(kiln::vdot(c.x(), c.t("other"))); }
void inner_of(Call& c) { c.out(kiln::inner(c.x(), c.t("other"))); }
void outer_of(Call& c) { c.out(kiln::outer(c.x(), c.t("vec2"))); }
void addmm_of(Call& c) {
  c.out(addmm(c.x(), c.t("mat1"), c.t("mat2"), c.scalar("beta", 1), c.scalar("alpha", 1)));
}
void addmv_of(Call& c) {
  c.out(addmv(c.x(), c.t("mat"), c.t("vec"), c.scalar("beta", 1), c.scalar("alpha", 1)));
}
void addr_of(Call& c) {
  c.out(addr(c.x(), c.t("vec1"), c.t("vec2"), c.scalar("beta", 1), c.scalar("alpha", 1)));
}
void baddbmm_of(Call& c) {
  c.out(baddbmm(c.x(), c.t("batch1"), c.t("batch2"), c.scalar("beta", 1), c.scalar("alpha", 1)));
}
void addbmm_of(Call& c) {
  c.out(addbmm(c.x(), c.t("batch1"), c.t("batch2"), c.scalar("beta", 1), c.scalar("alpha", 1)));
}
void linear_of(Call& c) { c.out(functional::linear(c.x(), c.t("weight"), c.maybe("bias"))); }
void bilinear_of(Call& c) {
  c.out(functional::bilinear(c.x(), c.t("input2"), c.t("weight"), c.maybe("bias")));
}
void einsum_of(Call& c) {
  c.ignore("path");  // another order gives the same
  c.out(einsum(c.s("equation"), c.list("tensors")));
}
void tensordot_of(Call& c) {
  c.out(tensordot(c.x(), c.t("other"), c.ints("dims_self"), c.ints("dims_other")));
}
void kron_of(Call& c) { c.out(kron(c.x(), c.t("other"))); }
void cross_of(Call& c) {
  if (c.target().find("linalg_") != std::string::npos) {
    c.out(linalg::cross(c.x(), c.t("other"), c.i("dim", -1)));
  } else {
    c.out(kiln::cross(c.x(), c.t("other"), c.maybe_i("dim")));
  }
}
void trace_of(Call& c) { c.out(trace(c.x())); }
void chain_matmul_of(Call& c) { c.out(chain_matmul(c.list("matrices"))); }
void multi_dot_of(Call& c) { c.out(linalg::multi_dot(c.list("tensors"))); }
void cdist_of(Call& c) {
  constexpr const char* kModes[] = {"use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist",
                                    "donot_use_mm_for_euclid_dist"};
  const int64_t mode = c.i("compute_mode", 0);
  if (mode < 0 || mode > 2) c.fail("a compute_mode that does not exist");
  c.out(cdist(c.t("x1"), c.t("x2"), c.f("p", 2.0), kModes[mode]));
}
// The distances of all pairs of rows i < j.
void pdist_of(Call& c) {
  const Tensor x = c.x();
  if (x.dim() != 2) c.fail("expected a matrix");
  const Tensor pairs = triu_indices(x.size(0), x.size(0), 1, {.device = x.device()});
  const Tensor difference =
      x.index_select(0, pairs.select(0, 0)).sub(x.index_select(0, pairs.select(0, 1)));
  c.out(kiln::norm(difference, c.f("p", 2.0), {1}));
}
// v g / |v|, with the norm over all dims but one.
void weight_norm_of(Call& c) {
  const Tensor v = c.t("v"), g = c.t("g");
  const int64_t kept = c.i("dim", 0);
  Dims dims;
  for (int64_t d = 0; d < v.dim(); ++d) {
    if (kept == -1 || d != kept) dims.push_back(d);
  }
  const Tensor norm = kiln::norm(v, 2.0, dims, true);
  c.out(v.mul(g.div(norm)));
  if (c.outputs() > 1) c.out(norm.detach());  // as in PyTorch
}

void attention_of(Call& c) {
  c.out(functional::scaled_dot_product_attention(
      c.t("query"), c.t("key"), c.t("value"), c.maybe("attn_mask"), c.f("dropout_p", 0.0),
      c.b("is_causal", false), c.maybe_f("scale"), c.b("enable_gqa", false)));
}
// Also the logarithms of the sums of exponentials, where something reads them.
void attention_with_sums(Call& c) {
  attention_of(c);
  if (!c.needs(1)) {
    c.out(Value{});
    return;
  }
  const NoGradGuard guard;  // as in PyTorch
  const Tensor query = c.t("query"), key = c.t("key");
  const double scale = c.f("scale", 1.0 / std::sqrt(static_cast<double>(query.size(-1))));
  Tensor scores = query.matmul(key.transpose(-2, -1)).mul(scale);
  if (c.b("is_causal", false)) {
    const Tensor sees = tril(ones({scores.size(-2), scores.size(-1)},
                                  {.dtype = DType::boolean, .device = scores.device()}));
    scores = scores.masked_fill(sees.logical_not(), -std::numeric_limits<double>::infinity());
  }
  if (c.has("attn_mask")) {
    const Tensor mask = c.t("attn_mask");
    scores = mask.dtype() == DType::boolean
                 ? scores.masked_fill(mask.logical_not(), -std::numeric_limits<double>::infinity())
                 : scores.add(mask);
  }
  c.out(scores.logsumexp(-1));
}

constexpr Operator kProductsOperators[] = {
    {"matmul", "default", matmul_of},
    {"linalg_matmul", "default", matmul_of},
    {"mm", "default", mm_of},
    {"bmm", "default", bmm_of},
    {"mv", "default", mv_of},
    {"dot", "default", dot_of},
    {"vdot", "default", vdot_of},
    {"inner", "default", inner_of},
    {"outer", "default", outer_of},
    {"ger", "default", outer_of},
    {"addmm", "default", addmm_of},
    {"addmv", "default", addmv_of},
    {"addr", "default", addr_of},
    {"baddbmm", "default", baddbmm_of},
    {"addbmm", "default", addbmm_of},
    {"linear", "default", linear_of},
    {"bilinear", "default", bilinear_of},
    {"einsum", "default", einsum_of},
    {"tensordot", "default", tensordot_of},
    {"kron", "default", kron_of},
    {"cross", "default", cross_of},
    {"linalg_cross", "default", cross_of},
    {"trace", "default", trace_of},
    {"chain_matmul", "default", chain_matmul_of},
    {"linalg_multi_dot", "default", multi_dot_of},
    {"cdist", "default", cdist_of},
    {"_cdist_forward", "default", cdist_of},
    {"pdist", "default", pdist_of},
    {"_pdist_forward", "default", pdist_of},
    {"_weight_norm", "default", weight_norm_of},
    {"_weight_norm_interface", "default", weight_norm_of},
    {"scaled_dot_product_attention", "default", attention_of},
    {"_scaled_dot_product_flash_attention_for_cpu", "default", attention_with_sums},
};

}  // namespace

std::span<const Operator> product_operators() { return kProductsOperators; }

}  // namespace kiln::pt2
