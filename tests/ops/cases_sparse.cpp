// Products with sparse matrices, given by their parts: values, dense operands, where rows begin,
// columns.
#include "kiln/tensor/linalg/csr.h"
#include "tests/ops/call.h"
#include "tests/ops/case.h"

namespace kiln::ops {

KILN_OP_CASES(sparse) {
  std::vector<double> starts;
  for (int i = 0; i <= 16384; i += 8) starts.push_back(i);
  const Input small_rows = indices({0, 2, 2, 5}, {4});
  const Input small_columns = indices({0, 2, 1, 2, 3}, {5});
  const Input rows = indices(starts, {2049});
  const Input columns = index({16384}, 0, 3000);
  op("sparse.mm",
     "torch.sparse.mm(torch.sparse_csr_tensor(c, d, a, (c.numel() - 1, b.shape[0])), b)",
     [](const Tensors& x) { return csr_matmul(x[2], x[3], x[0], x[1]); },
     {real({5}), real({4, 3}), small_rows, small_columns})
      .dtypes(kFloats)
      .loose(4)
      .big({real({16384}), real({3000, 64}), rows, columns});
  op("sparse.sampled_addmm",
     "torch.sparse.sampled_addmm(torch.sparse_csr_tensor(c, d, torch.zeros(d.numel(), "
     "dtype=a.dtype), (a.shape[0], b.shape[1])), a, b).values()",
     [](const Tensors& x) { return csr_sampled_matmul(x[2], x[3], x[0], x[1].t()); },
     {real({3, 6}), real({6, 4}), small_rows, small_columns})
      .dtypes(kDoubles)
      .loose(4)
      .big({real({2048, 64}), real({64, 3000}), rows, columns});
}

}  // namespace kiln::ops
