// Powers, exponentials and chains of matrices; tensors seen as matrices.
#include <array>
#include <cmath>
#include <limits>

#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/linalg/host.h"
#include "kiln/tensor/linalg/linalg.h"
#include "kiln/tensor/operands.h"

namespace kiln::linalg {

using namespace detail;

Tensor matrix_power(const Tensor& a, int64_t n) {
  constexpr const char* kOp = "linalg.matrix_power";
  if (!a.defined()) throw_error<ValueError>(kOp, ": the tensor is undefined");
  if (a.dim() < 2 || rows(a) != cols(a)) {
    throw_error<ShapeError>(kOp, ": the matrices must be square; got shape ", a.shape(),
                            "; expected [.., n, n]");
  }
  if (n == 0) {
    const Tensor one = identity_like(a, rows(a));
    return kiln::detail::constant_of(a, one.expand(a.shape()).clone());
  }
  Tensor square = n < 0 ? inv(a) : a;
  uint64_t left = n < 0 ? 0 - static_cast<uint64_t>(n) : static_cast<uint64_t>(n);
  if (left == 1) return n < 0 ? square : square.clone();
  Tensor out;
  while (true) {
    if (left & 1) out = out.defined() ? matmul(out, square) : square;
    left >>= 1;
    if (left == 0) return out;
    square = matmul(square, square);
  }
}

// ---- The exponential

namespace {

// Higham, "The scaling and squaring method for the matrix exponential revisited" (2005): the Pade
// approximant of degree 13 (3, 5, 7, 9 where the norm is small), whose 1-norms these are.
struct Degree {
  int degree;
  double bound64;
  double bound32;
};
constexpr std::array<Degree, 5> kDegrees = {{{3, 1.495585217958292e-2, 4.258730016922831e-1},
                                             {5, 2.539398330063230e-1, 1.880152677804762},
                                             {7, 9.504178996162932e-1, 3.925724783138660},
                                             {9, 2.097847961257068, 3.925724783138660},
                                             {13, 5.371920351148152, 3.925724783138660}}};

std::vector<double> pade_coefficients(int degree) {
  std::vector<double> c(static_cast<size_t>(degree) + 1);
  c[0] = 1;
  for (int j = 0; j < degree; ++j) {
    c[static_cast<size_t>(j) + 1] =
        c[static_cast<size_t>(j)] * (degree - j) / ((j + 1.0) * (2.0 * degree - j));
  }
  return c;
}

// Memory for one matrix at a time.
template <class T>
class Exponential {
  using R = lapack::Real<T>;

 public:
  explicit Exponential(int n)
      : n_(n), size_(static_cast<size_t>(n) * static_cast<size_t>(n)), pivots_(size_of(n)) {
    for (auto* m : {&scaled_, &square_, &power_, &even_, &odd_, &work_}) m->resize(size_);
  }

  // exp(a) over a.
  void run(T* a) {
    const double norm = one_norm(a);
    if (!std::isfinite(norm)) {
      std::fill_n(a, size_, T(std::numeric_limits<R>::quiet_NaN()));
      return;
    }
    constexpr bool is_double = sizeof(R) == 8;
    int squarings = 0;
    Degree degree = is_double ? kDegrees[4] : kDegrees[2];
    for (const Degree& d : kDegrees) {
      if (norm <= (is_double ? d.bound64 : d.bound32)) {
        degree = d;
        break;
      }
    }
    const double limit = is_double ? kDegrees[4].bound64 : kDegrees[2].bound32;
    if (norm > limit) squarings = static_cast<int>(std::ceil(std::log2(norm / limit)));
    const R scale = static_cast<R>(std::ldexp(1.0, -squarings));
    for (size_t i = 0; i < size_; ++i) scaled_[i] = a[i] * scale;
    approximate(pade_coefficients(degree.degree));
    std::copy(even_.begin(), even_.end(), a);
    for (int i = 0; i < squarings; ++i) {
      multiply(a, a, work_.data());
      std::copy(work_.begin(), work_.end(), a);
    }
  }

 private:
  static size_t size_of(int n) { return static_cast<size_t>(n); }

  double one_norm(const T* a) const {
    double most = 0;
    for (int j = 0; j < n_; ++j) {
      double sum = 0;
      for (int i = 0; i < n_; ++i) sum += double{std::abs(a[j * n_ + i])};
      if (!(sum <= most)) most = sum;  // NaN stays
      if (std::isnan(sum)) return sum;
    }
    return most;
  }

  void multiply(const T* x, const T* y, T* out) const {
    lapack::gemm('N', 'N', n_, n_, n_, T(1), x, n_, y, n_, T(0), out, n_);
  }

  // even_ <- (V - U)^-1 (V + U), V the even and U the odd part of the numerator.
  void approximate(const std::vector<double>& c) {
    multiply(scaled_.data(), scaled_.data(), square_.data());
    std::fill(power_.begin(), power_.end(), T(0));
    std::fill(even_.begin(), even_.end(), T(0));
    std::fill(odd_.begin(), odd_.end(), T(0));
    for (int i = 0; i < n_; ++i) power_[size_of(i) * size_of(n_ + 1)] = 1;
    for (size_t j = 0; j + 1 < c.size(); j += 2) {
      for (size_t i = 0; i < size_; ++i) {
        even_[i] += static_cast<R>(c[j]) * power_[i];
        odd_[i] += static_cast<R>(c[j + 1]) * power_[i];
      }
      if (j + 3 < c.size()) {
        multiply(power_.data(), square_.data(), work_.data());
        power_.swap(work_);
      }
    }
    multiply(scaled_.data(), odd_.data(), work_.data());
    for (size_t i = 0; i < size_; ++i) {
      const T v = even_[i];
      even_[i] = v + work_[i];
      work_[i] = v - work_[i];
    }
    lapack::getrf(n_, n_, work_.data(), n_, pivots_.data());
    lapack::getrs('N', n_, n_, work_.data(), n_, pivots_.data(), even_.data(), n_);
  }

  int n_;
  size_t size_;
  std::vector<int> pivots_;
  std::vector<T> scaled_, square_, power_, even_, odd_, work_;
};

Tensor exponential(const Tensor& a) {
  const int n = checked_size("linalg.matrix_exp", rows(a));
  // exp(A^T) is exp(A)^T: its columns are the rows wanted.
  const Tensor out = columns(mT(a));
  if (out.numel() == 0) return mT(from_columns(out, a.device()));
  by_type(a.dtype(), [&]<class T>(T) {
    T* data = out.data_ptr<T>();
    const int64_t size = int64_t{n} * n;
    const int64_t grain = std::max<int64_t>(1, 4096 / size);
    parallel_for(batch_count(a), grain, [&](int64_t begin, int64_t end) {
      Exponential<T> compute(n);
      for (int64_t i = begin; i < end; ++i) compute.run(data + i * size);
    });
  });
  return mT(from_columns(out, a.device()));
}

}  // namespace

Tensor matrix_exp(const Tensor& a) {
  constexpr const char* kOp = "linalg.matrix_exp";
  if (a.defined() && (a.dtype() == f16 || a.dtype() == bf16) && a.dim() >= 2) {
    return matrix_exp(a.to(f32)).to(a.dtype());
  }
  check_square(kOp, a);
  const auto forward = [](FunctionContext& ctx, const TensorList& in) {
    ctx.save_for_backward({in[0]});
    return TensorList{exponential(in[0])};
  };
  // The derivative of exp at A^H in direction G is the corner of exp([[A^H, G], [0, A^H]]).
  const auto backward = [](FunctionContext& ctx, const TensorList& g) {
    const Tensor ah = mH(ctx.saved_tensors()[0]);
    const int64_t n = rows(ah);
    const Tensor block = cat({cat({ah, g[0]}, -1), cat({zeros_like(ah), ah}, -1)}, -2);
    return TensorList{matrix_exp(block).narrow(-2, 0, n).narrow(-1, n, n)};
  };
  return call_function("linalg_matrix_exp", {a}, forward, backward)[0];
}

// ---- Chains

namespace {

// Cormen et al., 15.2: split[i][j] is where the product of i..j is cut last.
std::vector<std::vector<size_t>> best_order(const std::vector<int64_t>& sizes) {
  const size_t n = sizes.size() - 1;
  std::vector<std::vector<double>> cost(n, std::vector<double>(n, 0.0));
  std::vector<std::vector<size_t>> split(n, std::vector<size_t>(n, 0));
  for (size_t length = 1; length < n; ++length) {
    for (size_t i = 0; i + length < n; ++i) {
      const size_t j = i + length;
      cost[i][j] = std::numeric_limits<double>::infinity();
      for (size_t k = i; k < j; ++k) {
        const double c = cost[i][k] + cost[k + 1][j] +
                         static_cast<double>(sizes[i]) * static_cast<double>(sizes[k + 1]) *
                             static_cast<double>(sizes[j + 1]);
        if (c < cost[i][j]) {
          cost[i][j] = c;
          split[i][j] = k;
        }
      }
    }
  }
  return split;
}

Tensor multiply_range(const std::vector<Tensor>& tensors,
                      const std::vector<std::vector<size_t>>& split, size_t i, size_t j) {
  if (i == j) return tensors[i];
  const size_t k = split[i][j];
  return matmul(multiply_range(tensors, split, i, k), multiply_range(tensors, split, k + 1, j));
}

}  // namespace

Tensor multi_dot(std::span<const Tensor> tensors) {
  constexpr const char* kOp = "linalg.multi_dot";
  if (tensors.size() < 2) {
    throw_error<ValueError>(kOp, ": expected at least 2 tensors; got ", tensors.size());
  }
  std::vector<Tensor> chain(tensors.begin(), tensors.end());
  const bool row = chain.front().defined() && chain.front().dim() == 1;
  const bool column = chain.back().defined() && chain.back().dim() == 1;
  if (row) chain.front() = chain.front().unsqueeze(0);
  if (column) chain.back() = chain.back().unsqueeze(-1);
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < chain.size(); ++i) {
    if (!chain[i].defined() || chain[i].dim() != 2) {
      throw_error<ShapeError>(kOp,
                              ": expected matrices (the first and the last may be vectors); "
                              "tensor ",
                              i,
                              chain[i].defined() ? concat(" has shape ", chain[i].shape())
                                                 : std::string(" is undefined"));
    }
    check_like(kOp, chain[0], chain[i]);
    if (i > 0 && chain[i].size(0) != sizes.back()) {
      throw_error<ShapeError>(kOp, ": tensors ", i - 1, " and ", i, " cannot be multiplied; got ",
                              chain[i - 1].shape(), " and ", chain[i].shape());
    }
    if (i == 0) sizes.push_back(chain[i].size(0));
    sizes.push_back(chain[i].size(1));
  }
  Tensor out = multiply_range(chain, best_order(sizes), 0, chain.size() - 1);
  if (column) out = out.squeeze(-1);
  if (row) out = out.squeeze(0);
  return out;
}

// ---- Tensors as matrices

Tensor tensorinv(const Tensor& a, int64_t ind) {
  KILN_AUTOCAST(f32, tensorinv, a, ind);
  constexpr const char* kOp = "linalg.tensorinv";
  if (!a.defined()) throw_error<ValueError>(kOp, ": the tensor is undefined");
  if (ind <= 0) throw_error<ValueError>(kOp, ": expected ind > 0; got ", ind);
  Shape front;
  Shape back;
  for (int i = 0; i < a.dim(); ++i) (i < ind ? front : back).push_back(a.shape()[i]);
  if (front.numel() != back.numel()) {
    throw_error<ShapeError>(kOp, ": the sizes before and after ind must have one product; got ",
                            front, " and ", back);
  }
  Shape out = back;
  for (const int64_t d : front) out.push_back(d);
  return inv(a.reshape({front.numel(), back.numel()})).reshape(out);
}

Tensor tensorsolve(const Tensor& a, const Tensor& b, const Dims& dims) {
  KILN_AUTOCAST(f32, tensorsolve, a, b, dims);
  constexpr const char* kOp = "linalg.tensorsolve";
  if (!a.defined() || !b.defined()) throw_error<ValueError>(kOp, ": the tensor is undefined");
  Tensor moved = a;
  if (!dims.empty()) {
    const Dims to_end = normalize_dims(kOp, dims, a.dim());
    Dims order;
    for (int i = 0; i < a.dim(); ++i) {
      if (!to_end.contains(i)) order.push_back(i);
    }
    for (const int64_t d : to_end) order.push_back(d);
    moved = a.permute(order);
  }
  Shape out;
  for (int i = b.dim(); i < moved.dim(); ++i) out.push_back(moved.shape()[i]);
  if (moved.dim() < b.dim() || moved.numel() != b.numel() * out.numel() ||
      out.numel() != b.numel()) {
    throw_error<ShapeError>(kOp, ": the shapes do not fit; got A ", a.shape(), " and B ", b.shape(),
                            "; expected A to have B's dims and then as many elements again");
  }
  const Tensor matrix = moved.reshape({b.numel(), out.numel()});
  return solve(matrix, b.reshape({b.numel()})).reshape(out);
}

}  // namespace kiln::linalg
