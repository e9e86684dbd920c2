// Orders, quantiles and distinct values.
#include "kiln/tensor/index/sorting.h"

#include "kiln/pt2/ops/forms.h"
#include "kiln/tensor/index/unique.h"
#include "kiln/tensor/reduce/statistics.h"

namespace kiln::pt2 {

namespace {

// Kiln's order is stable, which satisfies every request.
void sort_of(Call& c) {
  c.ignore("stable");
  c.out(c.x().sort(c.i("dim", -1), c.b("descending", false)));
}
void argsort_of(Call& c) {
  c.ignore("stable");
  c.out(c.x().argsort(c.i("dim", -1), c.b("descending", false)));
}
void topk_of(Call& c) {
  c.ignore("sorted");
  c.out(c.x().topk(c.i("k"), c.i("dim", -1), c.b("largest", true)));
}
void kthvalue_of(Call& c) {
  c.out(c.x().kthvalue(c.i("k"), c.i("dim", -1), c.b("keepdim", false)));
}
void median_of(Call& c) {
  if (c.has("dim")) {
    c.out(c.x().median(c.i("dim"), c.b("keepdim", false)));
  } else {
    c.out(c.x().median());
  }
}
void nanmedian_of(Call& c) {
  if (c.has("dim")) {
    c.out(c.x().nanmedian(c.i("dim"), c.b("keepdim", false)));
  } else {
    c.out(c.x().nanmedian());
  }
}
void mode_of(Call& c) { c.out(kiln::mode(c.x(), c.i("dim", -1), c.b("keepdim", false))); }
template <bool kNan>
void quantile_of(Call& c) {
  const Tensor x = c.x();
  const auto dim = c.maybe_i("dim");
  const bool keepdim = c.b("keepdim", false);
  const std::string between = c.s("interpolation", "linear");
  if (c.value("q").tensor() != nullptr) {
    const Tensor q = c.t("q");
    c.out(kNan ? nanquantile(x, q, dim, keepdim, between) : quantile(x, q, dim, keepdim, between));
  } else {
    const double q = c.f("q");
    c.out(kNan ? nanquantile(x, q, dim, keepdim, between) : quantile(x, q, dim, keepdim, between));
  }
}
void searchsorted_of(Call& c) {
  const std::string side = c.s("side", "");
  if (!side.empty() && side != "left" && side != "right") c.fail("side is no side");
  const bool right = c.b("right", false) || side == "right";
  const Tensor sorted = c.t("sorted_sequence"), sorter = c.maybe("sorter");
  const bool narrow = c.b("out_int32", false);
  if (c.value("self").tensor() != nullptr) {
    c.out(searchsorted(sorted, c.t("self"), right, narrow, sorter));
  } else {
    c.out(searchsorted(sorted, c.scalar("self"), right, narrow, sorter));
  }
}
void bucketize_of(Call& c) {
  const Tensor boundaries = c.t("boundaries");
  const bool right = c.b("right", false), narrow = c.b("out_int32", false);
  if (c.value("self").tensor() != nullptr) {
    c.out(bucketize(c.t("self"), boundaries, right, narrow));
  } else {
    c.out(bucketize(c.scalar("self"), boundaries, right, narrow));
  }
}
void isin_of(Call& c) {
  const bool unique = c.b("assume_unique", false), invert = c.b("invert", false);
  if (c.has("element")) {
    c.out(kiln::isin(c.scalar("element"), c.t("test_elements"), unique, invert));
  } else if (c.has("test_element")) {
    c.out(kiln::isin(c.t("elements"), c.scalar("test_element"), unique, invert));
  } else {
    c.out(kiln::isin(c.t("elements"), c.t("test_elements"), unique, invert));
  }
}

void give(Call& c, const Unique& found) {
  const Tensor none = zeros({0}, {.dtype = DType::i64, .device = found.values.device()});
  c.out(found.values);
  c.out(found.inverse.defined() ? found.inverse : none);
  if (c.outputs() > 2) c.out(found.counts.defined() ? found.counts : none);
}
void unique_of(Call& c) {
  c.ignore("sorted");
  give(c,
       unique(c.x(), c.b("return_inverse", false), c.b("return_counts", false), c.maybe_i("dim")));
}
void unique_consecutive_of(Call& c) {
  give(c, unique_consecutive(c.x(), c.b("return_inverse", false), c.b("return_counts", false),
                             c.maybe_i("dim")));
}

constexpr Operator kSortingOperators[] = {
    {"sort", "default stable", sort_of},
    {"argsort", "default stable", argsort_of},
    {"msort", "default", unary_of<kiln::msort>},
    {"topk", "default", topk_of},
    {"kthvalue", "default", kthvalue_of},
    {"median", "default dim", median_of},
    {"nanmedian", "default dim", nanmedian_of},
    {"mode", "default", mode_of},
    {"quantile", "default scalar", quantile_of<false>},
    {"nanquantile", "default scalar", quantile_of<true>},
    {"searchsorted", "Tensor Scalar", searchsorted_of},
    {"bucketize", "Tensor Scalar", bucketize_of},
    {"isin", "Tensor_Tensor Tensor_Scalar Scalar_Tensor", isin_of},
    {"_unique2", "default", unique_of},
    {"unique_dim", "default", unique_of},
    {"unique_consecutive", "default", unique_consecutive_of},
};

}  // namespace

std::span<const Operator> sorting_operators() { return kSortingOperators; }

}  // namespace kiln::pt2
