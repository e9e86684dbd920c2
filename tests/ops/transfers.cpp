// Every op case on a device whose memory is not the host's, forward and backward: what reads its
// tensors back. Those that do stand in the lists below, each with its reason; a name that no longer
// does has to leave its list.
#include <map>
#include <set>

#include <doctest/doctest.h>

#include "tests/ops/case.h"
#include "tests/ops/counting_backend.h"

namespace kiln::ops {
namespace {

using Names = std::map<std::string, const char*>;

const char* const kLapack = "LAPACK computes it in host memory";
const char* const kSequence = "a loss over sequences, computed along their lattice on the host";
const char* const kValues = "the result's size or order hangs on values, found on the host";
const char* const kRandom = "draws by rejection or in an order that the host keeps";

// Whole tensors are read.
const Names& read_whole() {
  static const Names names = {
      {"binomial", kRandom},
      {"cholesky_inverse", kLapack},
      {"cholesky_solve", kLapack},
      {"geqrf", kLapack},
      {"linalg.cholesky", kLapack},
      {"linalg.cholesky_ex", kLapack},
      {"linalg.cond", kLapack},
      {"linalg.det", kLapack},
      {"linalg.eig", kLapack},
      {"linalg.eigh", kLapack},
      {"linalg.eigvals", kLapack},
      {"linalg.eigvalsh", kLapack},
      {"linalg.inv", kLapack},
      {"linalg.inv_ex", kLapack},
      {"linalg.ldl_solve", kLapack},
      {"linalg.lstsq", kLapack},
      {"linalg.lu", kLapack},
      {"linalg.lu_factor", kLapack},
      {"linalg.lu_solve", kLapack},
      {"linalg.matrix_exp", kLapack},
      {"linalg.matrix_norm", kLapack},
      {"linalg.matrix_power", kLapack},
      {"linalg.matrix_rank", kLapack},
      {"linalg.norm", kLapack},
      {"linalg.pinv", kLapack},
      {"linalg.qr", kLapack},
      {"linalg.slogdet", kLapack},
      {"linalg.solve", kLapack},
      {"linalg.solve_ex", kLapack},
      {"linalg.solve_triangular", kLapack},
      {"linalg.svd", kLapack},
      {"linalg.svdvals", kLapack},
      {"linalg.tensorinv", kLapack},
      {"linalg.tensorsolve", kLapack},
      {"logdet", kLapack},
      {"lu_unpack", kLapack},
      {"multinomial", kRandom},
      {"nn.functional.ctc_loss", kSequence},
      {"nn.functional.embedding_bag", kValues},
      {"nn.functional.rnnt_loss", kSequence},
      {"ormqr", kLapack},
      {"poisson", kRandom},
      {"repeat_interleave", kValues},
      {"svd", kLapack},
      {"unique", kValues},
  };
  return names;
}

const char* const kRange = "checks that indices or values are in range";
const char* const kCount = "a value is the size of the result";
const char* const kChoice = "a value chooses how it is computed";

// Single numbers are read.
const Names& read_scalars() {
  static const Names names = {
      {"Tensor.index_put", kRange},
      {"Tensor.index_put_", kRange},
      {"bernoulli", kRange},
      {"bincount", kCount},
      {"cov", kRange},
      {"gather_nd", kRange},
      {"histc", kChoice},
      {"histogram", kChoice},
      {"histogramdd", kCount},
      {"index_reduce", kChoice},
      {"istft", kRange},
      {"masked_scatter", kCount},
      {"median", kChoice},
      {"nanmedian", kChoice},
      {"nanquantile", kChoice},
      {"nn.functional.binary_cross_entropy", kRange},
      {"nn.functional.embedding", kRange},
      {"nn.functional.fractional_max_pool2d", kRange},
      {"nn.functional.fractional_max_pool3d", kRange},
      {"nn.functional.gaussian_nll_loss", kRange},
      {"nn.functional.max_pool2d", kRange},
      {"nn.functional.max_pool3d", kRange},
      {"nn.functional.one_hot", kCount},
      {"normal", kRange},
      {"put", kRange},
      {"quantile", kChoice},
      {"scatter", kChoice},
      {"scatter_nd", kRange},
      {"scatter_reduce", kChoice},
      {"take", kRange},
      {"take_along_dim", kRange},
  };
  return names;
}

const DeviceType kCounting = register_backend<Counting>("counting");

bool is_differentiable(const Case& c, const Input& input, DType dtype) {
  const bool follows = input.kind == Input::Kind::real || input.kind == Input::Kind::complex;
  return follows && c.derivatives > 0 && (is_floating_point(dtype) || is_complex(dtype));
}

void run(const Case& c, DType dtype) {
  Tensors inputs = make_inputs(c, c.inputs, dtype, Device(kCounting));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (is_differentiable(c, c.inputs[i], dtype)) inputs[i] = inputs[i].detach().requires_grad_();
  }
  transfers = {};
  for (const Tensor& y : c.call(inputs)) {
    if (!y.defined() || !y.requires_grad()) continue;
    const Tensor parts = is_complex(y.dtype()) ? view_as_real(y) : y;
    static_cast<void>(parts.sum().backward({}, true));
  }
}

void check_list(const char* what, const std::set<std::string>& found, const Names& names) {
  for (const std::string& name : found) {
    INFO(name, " reads ", std::string(what), " back and is not in the list");
    CHECK(names.contains(name));
  }
  for (const auto& [name, why] : names) {
    INFO(name, " (", std::string(why), ") is in the list and reads no ", std::string(what));
    CHECK(found.contains(name));
  }
}

TEST_CASE("op cases: what is read back from a device stands in a list") {
  REQUIRE(!cases().empty());
  std::set<std::string> whole, scalars;
  for (const Case& c : cases()) {
    for (const DType dtype : c.dtype_list) {
      INFO(describe(c, dtype));
      try {
        run(c, dtype);
      } catch (const std::exception& error) {
        FAIL_CHECK(describe(c, dtype), ": ", std::string(error.what()));
      }
      if (transfers.whole > 0) {
        whole.insert(c.name);
        if (is_complex(dtype)) {
          INFO("complex tensors are read back outside linear algebra");
          CHECK((read_whole().contains(c.name) && read_whole().at(c.name) == kLapack));
        }
      } else if (transfers.scalars > 0) {
        scalars.insert(c.name);
      }
    }
  }
  for (const std::string& name : whole) scalars.erase(name);
  check_list("whole tensors", whole, read_whole());
  check_list("single numbers", scalars, read_scalars());
  CHECK(read_whole().size() <= 45);
  CHECK(read_scalars().size() <= 35);
}

}  // namespace
}  // namespace kiln::ops
