// Every op case on "meta" against the cpu: the same shapes, dtypes and strides. Names whose results
// hang on values stand in one list.
#include <map>
#include <set>

#include <doctest/doctest.h>

#include "tests/ops/case.h"
#include "tests/ops/host_reads.h"

namespace kiln::ops {
namespace {

// Why a name has no result on "meta", in some of its cases at least.
constexpr std::string_view kSize = "the size of the result hangs on values";
constexpr std::string_view kChecks =
    "reads one value, as a check of its operands or a choice of the way";
constexpr std::string_view kHost = "computes in host memory";

const Names& needing_values() {
  static const Names names = [] {
    Names all = {
        {"argwhere", kSize},
        {"bincount", kSize},
        {"histogramdd", kSize},
        {"masked_scatter", kSize},
        {"masked_select", kSize},
        {"nn.functional.one_hot", kSize},
        {"nonzero", kSize},
        {"nonzero_static", kSize},
        {"repeat_interleave", kSize},
        {"unique", kSize},
        {"unique_consecutive", kSize},
        {"where", kSize},
        {"Tensor.index_put", kChecks},
        {"Tensor.index_put_", kChecks},
        {"bernoulli", kChecks},
        {"binomial", kChecks},
        {"cov", kChecks},
        {"gather_nd", kChecks},
        {"histc", kChecks},
        {"histogram", kChecks},
        {"index_reduce", kChecks},
        {"istft", kChecks},
        {"median", kChecks},
        {"nanmedian", kChecks},
        {"nanquantile", kChecks},
        {"nn.functional.binary_cross_entropy", kChecks},
        {"nn.functional.embedding", kChecks},
        {"nn.functional.embedding_bag", kChecks},
        {"nn.functional.gaussian_nll_loss", kChecks},
        {"nn.functional.max_pool2d", kChecks},
        {"nn.functional.max_pool3d", kChecks},
        {"normal", kChecks},
        {"poisson", kChecks},
        {"put", kChecks},
        {"quantile", kChecks},
        {"scatter", kChecks},
        {"scatter_nd", kChecks},
        {"scatter_reduce", kChecks},
        {"take", kChecks},
        {"take_along_dim", kChecks},
        {"multinomial", kHost},
        {"nn.functional.ctc_loss", kChecks},
        {"nn.functional.fractional_max_pool2d", kHost},
        {"nn.functional.fractional_max_pool3d", kHost},
        {"nn.functional.rnnt_loss", kChecks},
        {"linalg.householder_product", kLapack},
    };
    for (const auto& [name, why] : read_whole()) {
      if (why == kLapack) all.emplace(name, why);
    }
    return all;
  }();
  return names;
}

// "float32 [2, 3] strides [3, 1]" for each result.
std::string looks(const Tensors& xs) {
  std::string out;
  for (const Tensor& x : xs) {
    if (!x.defined()) {
      out += "undefined; ";
      continue;
    }
    out += concat(x.dtype(), " ", x.shape());
    if (x.dtype() != DType::q8 && x.numel() > 0) {
      // The stride of a dim of size 1 means nothing.
      Strides strides = x.stride();
      for (int d = 0; d < strides.rank(); ++d) strides[d] = x.shape()[d] == 1 ? 0 : strides[d];
      out += concat(" strides ", strides);
    }
    out += "; ";
  }
  return out;
}

Tensors on_meta(const Tensors& xs) {
  Tensors out;
  for (const Tensor& x : xs) out.push_back(x.to(Device("meta")));
  return out;
}

// As tests/ops/strided.cpp: dims swapped in memory, with gaps.
Tensors spread(Tensors xs) {
  for (Tensor& x : xs) {
    if (x.dim() == 0) continue;
    const Tensor source = x.dim() > 1 ? x.transpose(0, 1).contiguous() : x;
    const Tensor wide = stack({source, source}, -1).select(-1, 0);
    x = x.dim() > 1 ? wide.transpose(0, 1) : wide;
  }
  return xs;
}

// Whether it ran on meta; results are compared then.
bool check(const Case& c, const Tensors& inputs, bool strided) {
  Tensors here = on_meta(inputs);
  if (strided) here = spread(here);
  Tensors got;
  try {
    got = c.call(here);
  } catch (const NotImplementedError& error) {
    const std::string what = error.what();
    if (what.find("meta tensor") == std::string::npos) throw;
    return false;
  }
  const Tensors want = c.call(strided ? spread(inputs) : inputs);
  if (!c.inputs.empty()) {
    for (const Tensor& x : got) CHECK(x.device() == Device("meta"));
  }
  CHECK(looks(got) == looks(want));
  return true;
}

TEST_CASE("op cases: meta infers the shapes, dtypes and strides of the cpu") {
  REQUIRE(!cases().empty());
  std::set<std::string> need;
  for (const Case& c : cases()) {
    for (const DType dtype : c.dtype_list) {
      INFO(describe(c, dtype));
      try {
        const Tensors inputs = make_inputs(c, c.inputs, dtype);
        const bool ran = check(c, inputs, false);
        if (!ran) need.insert(c.name);
        if (dtype == c.dtype_list[0] && c.strided_why.empty()) {
          INFO("strided");
          check(c, inputs, true);
        }
      } catch (const std::exception& error) {
        FAIL_CHECK(describe(c, dtype), ": ", std::string(error.what()));
      }
    }
  }
  for (const std::string& name : need) {
    INFO(name, " needs values and is not in the list");
    CHECK(needing_values().contains(name));
  }
  for (const auto& [name, why] : needing_values()) {
    INFO(name, " (", why, ") is in the list and needs no values");
    CHECK(need.contains(name));
  }
}

}  // namespace
}  // namespace kiln::ops
