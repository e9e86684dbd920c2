#include <algorithm>
#include <cmath>
#include <numeric>

#include "kiln/core/error.h"
#include "kiln/graph/file/free_sizes.h"

namespace kiln::graph {

namespace {

__extension__ using Wide = __int128;

constexpr int kMostFactors = 3;  // of a product of sizes
constexpr int64_t kMostOver = 4096;
constexpr Wide kMost = Wide{1} << 62;

// Every product of at most three sizes, the shortest first.
std::vector<std::vector<int>> products_of(int count) {
  std::vector<std::vector<int>> out{{}};
  size_t begin = 0;
  for (int length = 1; length <= kMostFactors; ++length) {
    const size_t end = out.size();
    for (size_t i = begin; i < end; ++i) {
      for (int s = out[i].empty() ? 0 : out[i].back(); s < count; ++s) {
        out.push_back(out[i]);
        out.back().push_back(s);
      }
    }
    begin = end;
  }
  out.erase(out.begin());
  return out;
}

Wide product_at(const std::vector<int>& product, const Sizes& sizes) {
  Wide out = 1;
  for (const int s : product) {
    out *= sizes[static_cast<size_t>(s)];
    if (out > kMost || out < -kMost) throw_error<ValueError>("sizes that are too large");
  }
  return out;
}

// Factors of products such that their sum is `over` times the values: by elimination, exactly, on
// as many samples as there are factors.
struct System {
  std::vector<std::vector<int>> products;
  std::vector<std::vector<Wide>> at;  // by sample, by product
};
std::optional<SizeExpression> solved(const System& system, std::span<const int64_t> values) {
  const size_t n = system.products.size();
  // Rows of [products.., value], made triangular without fractions (Bareiss).
  std::vector<std::vector<Wide>> rows;
  for (size_t k = 0; k < values.size(); ++k) {
    rows.push_back(system.at[k]);
    rows.back().push_back(values[k]);
  }
  Wide before = 1;
  for (size_t c = 0; c < n; ++c) {
    size_t pivot = c;
    while (pivot < rows.size() && rows[pivot][c] == 0) ++pivot;
    if (pivot == rows.size()) return std::nullopt;
    std::swap(rows[c], rows[pivot]);
    for (size_t r = 0; r < rows.size(); ++r) {
      if (r == c) continue;
      const Wide by = rows[r][c], with = rows[c][c];
      for (size_t i = 0; i <= n; ++i) {
        Wide a = 0, b = 0;
        if (__builtin_mul_overflow(rows[r][i], with, &a) ||
            __builtin_mul_overflow(rows[c][i], by, &b) || __builtin_sub_overflow(a, b, &a)) {
          return std::nullopt;
        }
        rows[r][i] = a / before;
      }
    }
    before = rows[c][c];
  }
  for (size_t r = n; r < rows.size(); ++r) {  // what is left over must agree
    if (rows[r][n] != 0) return std::nullopt;
  }
  // Row c says: rows[c][c] factor_c = rows[c][n].
  Wide over = 1;
  for (size_t c = 0; c < n; ++c) {
    const Wide d = rows[c][c] < 0 ? -rows[c][c] : rows[c][c];
    Wide a = rows[c][n] < 0 ? -rows[c][n] : rows[c][n], b = d;
    while (b != 0) std::swap(a %= b, b);
    const Wide need = d / (a == 0 ? d : a);
    Wide x = over, y = need;
    while (y != 0) std::swap(x %= y, y);
    over = over / x * need;
    if (over > kMostOver) return std::nullopt;
  }
  SizeExpression out;
  out.over = static_cast<int64_t>(over);
  for (size_t c = 0; c < n; ++c) {
    Wide factor = 0;
    if (__builtin_mul_overflow(rows[c][n], over, &factor)) return std::nullopt;
    factor /= rows[c][c];
    if (factor > kMost || factor < -kMost) return std::nullopt;
    if (factor != 0) out.terms.push_back({static_cast<int64_t>(factor), system.products[c]});
  }
  return out;
}

std::optional<SizeExpression> tried(std::vector<std::vector<int>> products,
                                    std::span<const int64_t> values,
                                    std::span<const Sizes> samples) {
  if (products.size() >= samples.size()) return std::nullopt;  // nothing would be left to check
  System system{std::move(products), {}};
  for (const Sizes& sample : samples) {
    std::vector<Wide>& row = system.at.emplace_back();
    for (const auto& product : system.products) row.push_back(product_at(product, sample));
  }
  return solved(system, values);
}

}  // namespace

bool SizeExpression::is_constant() const {
  return std::ranges::all_of(terms, [](const Term& t) { return t.sizes.empty(); });
}
int SizeExpression::single() const {
  const bool is_one = terms.size() == 1 && terms[0].factor == 1 && over == 1;
  return is_one && terms[0].sizes.size() == 1 ? terms[0].sizes[0] : -1;
}
int64_t SizeExpression::at(const Sizes& sizes) const {
  Wide sum = 0;
  for (const Term& term : terms) {
    const Wide product = product_at(term.sizes, sizes);
    if (product != 0 && (term.factor > kMost / product || term.factor < -kMost / product)) {
      throw_error<ValueError>("sizes that are too large");
    }
    sum += term.factor * product;
    if (sum > kMost || sum < -kMost) throw_error<ValueError>("sizes that are too large");
  }
  if (sum % over != 0) {
    throw_error<ValueError>("got ", static_cast<int64_t>(sum), "; expected a multiple of ", over);
  }
  return static_cast<int64_t>(sum / over);
}
std::string SizeExpression::str(std::span<const std::string> names) const {
  std::string out;
  for (const Term& term : terms) {
    const int64_t size = term.factor < 0 ? -term.factor : term.factor;
    out += out.empty() ? (term.factor < 0 ? "-" : "") : (term.factor < 0 ? " - " : " + ");
    bool first = size == 1 && !term.sizes.empty();
    if (!first) out += concat(size);
    for (const int s : term.sizes) {
      out += concat(first ? "" : "*", names[static_cast<size_t>(s)]);
      first = false;
    }
  }
  if (out.empty()) out = "0";
  if (over == 1) return out;
  return terms.size() > 1 ? concat("(", out, ")/", over) : concat(out, "/", over);
}

std::optional<SizeExpression> fitted(std::span<const int64_t> values,
                                     std::span<const Sizes> samples) {
  const bool same = std::ranges::all_of(values, [&](int64_t v) { return v == values[0]; });
  if (same) return SizeExpression{{{values[0], {}}}, 1};
  for (const int64_t v : values) {
    if (v > (int64_t{1} << 48) || v < -(int64_t{1} << 48)) return std::nullopt;
  }
  const auto products = products_of(static_cast<int>(samples[0].size()));
  std::vector<std::vector<std::vector<int>>> forms;
  for (const auto& p : products) forms.push_back({p});
  for (const auto& p : products) forms.push_back({p, {}});
  for (size_t i = 0; i < products.size(); ++i) {
    for (size_t k = i + 1; k < products.size(); ++k) forms.push_back({products[i], products[k]});
  }
  for (size_t i = 0; i < products.size(); ++i) {
    for (size_t k = i + 1; k < products.size(); ++k) {
      forms.push_back({products[i], products[k], {}});
    }
  }
  for (auto& form : forms) {
    if (auto found = tried(std::move(form), values, samples)) return found;
  }
  return std::nullopt;
}

std::optional<SizeExpression> fitted_number(std::span<const double> values,
                                            std::span<const Sizes> samples, bool& reciprocal) {
  for (const bool turned : {false, true}) {
    std::vector<int64_t> whole;
    for (const double v : values) {
      const double x = turned ? 1.0 / v : v;
      const double nearest = std::round(x);
      const bool close = turned ? std::abs(x - nearest) <= 1e-6 * std::abs(nearest) : x == nearest;
      if (!std::isfinite(x) || !close || std::abs(nearest) > 1e15) break;
      whole.push_back(static_cast<int64_t>(nearest));
    }
    if (whole.size() != values.size()) continue;
    reciprocal = turned;
    if (auto found = fitted(whole, samples)) return found;
  }
  return std::nullopt;
}

std::vector<Sizes> sample_sizes(const Sizes& example, int attempt) {
  // How far above the least size each sample is, for up to four free sizes.
  constexpr int64_t kSteps[4][7] = {
      {0, 1, 2, 4, 3, 5, 6}, {0, 3, 1, 2, 6, 4, 5}, {0, 2, 5, 1, 4, 3, 6}, {0, 5, 3, 6, 1, 2, 4}};
  std::vector<Sizes> out;
  const size_t count = example.size() == 1 ? 5 : 7;
  for (size_t k = 0; k < count; ++k) {
    Sizes& sizes = out.emplace_back();
    for (size_t i = 0; i < example.size(); ++i) {
      const int64_t least = std::max<int64_t>(2, example[i]), step = kSteps[i % 4][k];
      // First sizes in a row; then others, and multiples, for what takes no others.
      sizes.push_back(attempt == 0   ? least + step
                      : attempt == 1 ? least + 7 + 2 * step + static_cast<int64_t>(i)
                                     : least * (1 + step));
    }
  }
  return out;
}

}  // namespace kiln::graph
