// Text of sparse tensors: their parts, each as a tensor of its own.
#include <ostream>

#include "kiln/core/complex.h"
#include "kiln/sparse/sparse_impl.h"
#include "kiln/tensor/print.h"

namespace kiln {

namespace {

constexpr int kIndent = 7;  // "tensor("

std::string part(const std::string& name, const Tensor& x) {
  const std::string prefix = name + "=tensor(";
  std::string out = prefix;
  out += detail::elements_text(x.detach(), kIndent + static_cast<int>(prefix.size()));
  if (x.numel() == 0) out += ", size=" + detail::size_text(x.shape());
  return out + ")";
}

}  // namespace

std::string to_string(const SparseTensor& x) {
  if (!x.defined()) return "tensor(undefined)";
  const bool coo = x.layout() == SparseLayout::coo;
  const std::string line = ",\n" + std::string(kIndent, ' ');
  std::string text = "tensor(";
  if (coo) {
    text += part("indices", x._indices()) + line;
  } else {
    text += part("crow_indices", x.crow_indices()) + line;
    text += part("col_indices", x.col_indices()) + line;
  }
  text += part("values", x._values());
  std::vector<std::string> suffixes;
  if (x.device().type != kCpu) suffixes.push_back(concat("device='", x.device(), "'"));
  suffixes.push_back("size=" + detail::size_text(x.shape()));
  suffixes.push_back(concat("nnz=", x.nnz()));
  const DType plain = default_dtype();
  if (x.dtype() != plain && x.dtype() != i64 && x.dtype() != bool_ &&
      x.dtype() != complex_dtype(plain)) {
    suffixes.push_back(concat("dtype=kiln.", x.dtype()));
  }
  suffixes.push_back(coo ? "layout=kiln.sparse_coo" : "layout=kiln.sparse_csr");
  if (!x._values().is_leaf()) {
    suffixes.push_back(concat("grad_fn=<", x._values().grad_fn(), ">"));
  } else if (x.requires_grad()) {
    suffixes.push_back("requires_grad=True");
  }
  return detail::with_suffixes(text, suffixes, kIndent, coo);
}

std::ostream& operator<<(std::ostream& out, const SparseTensor& x) { return out << to_string(x); }

}  // namespace kiln
