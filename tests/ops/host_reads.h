// The op cases that read tensors back from a device to the host, each with its reason.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace kiln::ops {

using Names = std::map<std::string, std::string_view>;

inline constexpr std::string_view kLapack = "LAPACK computes it in host memory";
inline constexpr std::string_view kLabels =
    "checks its labels and lengths, and sorts labels that stand in one row";
inline constexpr std::string_view kValues =
    "the result's size or order hangs on values, found on the host";
inline constexpr std::string_view kRandom = "draws by rejection or in an order that the host keeps";

// Whole tensors are read.
inline const Names& read_whole() {
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
      {"nn.functional.ctc_loss", kLabels},
      {"nn.functional.embedding_bag", kValues},
      {"nn.functional.rnnt_loss", kLabels},
      {"ormqr", kLapack},
      {"poisson", kRandom},
      {"repeat_interleave", kValues},
      {"svd", kLapack},
      {"unique", kValues},
  };
  return names;
}

inline constexpr std::string_view kRange = "checks that indices or values are in range";
inline constexpr std::string_view kCount = "a value is the size of the result";
inline constexpr std::string_view kChoice = "a value chooses how it is computed";

// Single numbers are read.
inline const Names& read_scalars() {
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

}  // namespace kiln::ops
