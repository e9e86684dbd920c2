// Einstein's summation.
#include <algorithm>
#include <array>

#include "kiln/tensor/linalg/linalg.h"
#include "kiln/tensor/linalg/products.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln {

namespace {

constexpr const char* kOp = "einsum";

// A dim's name: 0 .. 51 for letters, from kEllipsis on for the dims that "..." stands for, counted
// from the last.
using Label = int;
constexpr Label kEllipsis = 52;
using Labels = std::vector<Label>;

Label label_of(char c, const std::string& equation) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return 26 + c - 'a';
  throw_error<ValueError>(kOp, ": unexpected '", c, "' in '", equation,
                          "'; expected letters, ',', '...' and '->'");
}

bool contains(const Labels& labels, Label x) {
  return std::find(labels.begin(), labels.end(), x) != labels.end();
}

// One operand's part of the equation, or the output's; the place of "..." is -1.
Labels parse_part(const std::string& text, const std::string& equation, bool* has_ellipsis) {
  Labels out;
  *has_ellipsis = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') continue;
    if (text[i] != '.') {
      out.push_back(label_of(text[i], equation));
      continue;
    }
    if (text.compare(i, 3, "...") != 0 || *has_ellipsis) {
      throw_error<ValueError>(kOp, ": misplaced '.' in '", equation,
                              "'; expected at most one '...' for each operand");
    }
    *has_ellipsis = true;
    out.push_back(-1);
    i += 2;
  }
  return out;
}

Labels expand_ellipsis(const Labels& labels, int count) {
  Labels out;
  for (const Label l : labels) {
    if (l >= 0) {
      out.push_back(l);
    } else {
      for (int i = count; i > 0; --i) out.push_back(kEllipsis + i - 1);
    }
  }
  return out;
}

struct Operand {
  Tensor x;
  Labels labels;  // one for each dim, none twice
};

struct Equation {
  std::vector<Labels> inputs;
  Labels output;
};

Equation parse(const std::string& equation, std::span<const Tensor> operands) {
  const size_t arrow = equation.find("->");
  const std::string left = equation.substr(0, arrow);
  std::vector<std::string> parts(1);
  for (const char c : left) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  if (parts.size() != operands.size()) {
    throw_error<ValueError>(kOp, ": '", equation, "' describes ", parts.size(), " operands; got ",
                            operands.size());
  }
  Equation out;
  int most = 0;  // dims that an ellipsis stands for
  bool any_ellipsis = false;
  std::array<int, kEllipsis> seen{};
  for (size_t i = 0; i < parts.size(); ++i) {
    bool has_ellipsis = false;
    const Labels labels = parse_part(parts[i], equation, &has_ellipsis);
    const int rank = detail::impl_of(kOp, operands[i]).shape().rank();
    const int named = static_cast<int>(labels.size()) - (has_ellipsis ? 1 : 0);
    if (has_ellipsis ? rank < named : rank != named) {
      throw_error<ShapeError>(kOp, ": operand ", i, " has ", rank, " dims; got '", parts[i],
                              "' for shape ", operands[i].shape());
    }
    any_ellipsis = any_ellipsis || has_ellipsis;
    if (has_ellipsis) most = std::max(most, rank - named);
    for (const Label l : labels) {
      if (l >= 0) ++seen[static_cast<size_t>(l)];
    }
    out.inputs.push_back(expand_ellipsis(labels, has_ellipsis ? rank - named : 0));
  }
  if (arrow == std::string::npos) {
    if (any_ellipsis) out.output = expand_ellipsis({-1}, most);
    for (Label l = 0; l < kEllipsis; ++l) {
      if (seen[static_cast<size_t>(l)] == 1) out.output.push_back(l);
    }
    return out;
  }
  bool has_ellipsis = false;
  out.output = expand_ellipsis(parse_part(equation.substr(arrow + 2), equation, &has_ellipsis),
                               any_ellipsis ? most : 0);
  for (size_t i = 0; i < out.output.size(); ++i) {
    const Label l = out.output[i];
    if (l < kEllipsis && seen[static_cast<size_t>(l)] == 0) {
      throw_error<ValueError>(kOp, ": an output letter stands for no operand's dim; got '",
                              equation, "'");
    }
    if (contains(Labels(out.output.begin(), out.output.begin() + static_cast<std::ptrdiff_t>(i)),
                 l)) {
      throw_error<ValueError>(kOp, ": an output letter stands twice; got '", equation, "'");
    }
  }
  return out;
}

// Takes the diagonal of dims that have one name.
Operand without_repeats(const Tensor& x, const Labels& labels, const std::string& equation) {
  Operand out{x, labels};
  for (size_t i = 0; i < out.labels.size(); ++i) {
    for (size_t j = i + 1; j < out.labels.size(); ++j) {
      if (out.labels[i] != out.labels[j]) continue;
      const auto a = static_cast<int64_t>(i);
      const auto b = static_cast<int64_t>(j);
      if (out.x.size(a) != out.x.size(b)) {
        throw_error<ShapeError>(kOp, ": a repeated letter names dims of different sizes; got '",
                                equation, "' for shape ", x.shape());
      }
      const Label l = out.labels[i];
      out.x = linalg::diagonal(out.x, 0, a, b);
      out.labels.erase(out.labels.begin() + b);
      out.labels.erase(out.labels.begin() + a);
      out.labels.push_back(l);
      return without_repeats(out.x, out.labels, equation);
    }
  }
  return out;
}

// Sizes by label over all operands; throws where they neither agree nor broadcast.
std::vector<int64_t> sizes_of(const std::vector<Operand>& operands, const std::string& equation) {
  std::vector<int64_t> sizes(kEllipsis + kMaxRank, 1);
  for (const Operand& o : operands) {
    for (size_t i = 0; i < o.labels.size(); ++i) {
      int64_t& size = sizes[static_cast<size_t>(o.labels[i])];
      const int64_t here = o.x.size(static_cast<int64_t>(i));
      if (here == 1) continue;
      if (size != 1 && size != here) {
        throw_error<ShapeError>(kOp, ": one letter names sizes that do not broadcast; got ", size,
                                " and ", here, " in '", equation, "'");
      }
      size = here;
    }
  }
  return sizes;
}

Operand permuted(const Operand& o, const Labels& to) {
  Dims order;
  for (const Label l : to) {
    order.push_back(std::find(o.labels.begin(), o.labels.end(), l) - o.labels.begin());
  }
  return {o.x.permute(order), to};
}

// Sums over the dims that nobody needs any more, and drops those of size 1 that others broadcast.
template <class Needed>
Operand reduced(const Operand& o, Needed&& needed, bool keeps_dtype = true) {
  Dims sum;
  Labels left;
  for (size_t i = 0; i < o.labels.size(); ++i) {
    if (needed(o.labels[i], o.x.size(static_cast<int64_t>(i)))) {
      left.push_back(o.labels[i]);
    } else {
      sum.push_back(static_cast<int64_t>(i));
    }
  }
  if (sum.empty()) return o;
  const DType dtype = o.x.dtype();
  return {keeps_dtype ? o.x.sum(sum).to(dtype) : o.x.sum(sum), left};
}

int64_t product_of(const Shape& shape, int from, int to) {
  int64_t n = 1;
  for (int i = from; i < to; ++i) n *= shape[i];
  return n;
}

// The product of two operands, summed over what they share and `wanted` says is not needed after.
template <class Wanted>
Operand contract(Operand a, Operand b, const std::vector<int64_t>& sizes, Wanted&& wanted) {
  // A dim of size 1 that broadcasts against the other's belongs to the other alone.
  const auto keeps = [&](const Operand& other) {
    return [&](Label l, int64_t size) {
      const bool shared = contains(other.labels, l);
      if (shared && size == 1 && sizes[static_cast<size_t>(l)] != 1) return false;
      return shared || wanted(l);
    };
  };
  Operand left = reduced(a, keeps(b));
  Operand right = reduced(b, keeps(a));
  Labels batch;
  Labels summed;
  Labels left_only;
  Labels right_only;
  for (const Label l : left.labels) {
    if (!contains(right.labels, l)) {
      left_only.push_back(l);
    } else if (wanted(l)) {
      batch.push_back(l);
    } else {
      summed.push_back(l);
    }
  }
  for (const Label l : right.labels) {
    if (!contains(left.labels, l)) right_only.push_back(l);
  }
  const auto joined = [](const Labels& x, const Labels& y, const Labels& z) {
    Labels out = x;
    out.insert(out.end(), y.begin(), y.end());
    out.insert(out.end(), z.begin(), z.end());
    return out;
  };
  left = permuted(left, joined(batch, left_only, summed));
  right = permuted(right, joined(batch, summed, right_only));
  const Shape ls = left.x.shape();
  const Shape rs = right.x.shape();
  const int nb = static_cast<int>(batch.size());
  const int nl = static_cast<int>(left_only.size());
  const int ns = static_cast<int>(summed.size());
  const int64_t n = product_of(ls, nb, nb + nl);
  const int64_t k = product_of(ls, nb + nl, ls.rank());
  const int64_t m = product_of(rs, nb + ns, rs.rank());
  Shape out;
  for (int i = 0; i < nb + nl; ++i) out.push_back(ls[i]);
  for (int i = nb + ns; i < rs.rank(); ++i) out.push_back(rs[i]);
  const Labels labels = joined(batch, left_only, right_only);
  const int64_t count = product_of(ls, 0, nb);
  if (ns == 0) {
    return {mul(left.x.reshape({count, n, 1}), right.x.reshape({count, 1, m})).reshape(out),
            labels};
  }
  if (nb == 0)
    return {matmul(left.x.reshape({n, k}), right.x.reshape({k, m})).reshape(out), labels};
  return {matmul(left.x.reshape({count, n, k}), right.x.reshape({count, k, m})).reshape(out),
          labels};
}

// The cost of contracting a with b: the sizes of all labels of both.
double cost_of(const Operand& a, const Operand& b, const std::vector<int64_t>& sizes) {
  double cost = 1;
  for (const Label l : a.labels) cost *= static_cast<double>(sizes[static_cast<size_t>(l)]);
  for (const Label l : b.labels) {
    if (!contains(a.labels, l)) cost *= static_cast<double>(sizes[static_cast<size_t>(l)]);
  }
  return cost;
}

}  // namespace

Tensor einsum(const std::string& equation, std::span<const Tensor> tensors) {
  if (tensors.empty()) throw_error<ValueError>(kOp, ": expected at least one operand");
  const Equation parsed = parse(equation, tensors);
  std::vector<Operand> operands;
  for (size_t i = 0; i < tensors.size(); ++i) {
    operands.push_back(without_repeats(tensors[i], parsed.inputs[i], equation));
  }
  const std::vector<int64_t> sizes = sizes_of(operands, equation);
  while (operands.size() > 1) {
    size_t first = 0;
    size_t second = 1;
    double best = cost_of(operands[0], operands[1], sizes);
    for (size_t i = 0; i < operands.size(); ++i) {
      for (size_t j = i + 1; j < operands.size(); ++j) {
        const double cost = cost_of(operands[i], operands[j], sizes);
        if (cost < best) {
          best = cost;
          first = i;
          second = j;
        }
      }
    }
    const Operand a = operands[first];
    const Operand b = operands[second];
    operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(second));
    operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(first));
    operands.push_back(contract(a, b, sizes, [&](Label l) {
      if (contains(parsed.output, l)) return true;
      for (const Operand& other : operands) {
        if (contains(other.labels, l)) return true;
      }
      return false;
    }));
  }
  // The sum of one operand of small integers is i64, as that of sum().
  Operand last = reduced(
      operands[0], [&](Label l, int64_t) { return contains(parsed.output, l); },
      tensors.size() > 1);
  // An ellipsis of an operand may stand for fewer dims than the output's: those come back as 1.
  for (const Label l : parsed.output) {
    if (contains(last.labels, l)) continue;
    last.x = last.x.unsqueeze(-1);
    last.labels.push_back(l);
  }
  return permuted(last, parsed.output).x;
}

}  // namespace kiln
