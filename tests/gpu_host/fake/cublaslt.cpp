// A libcublasLt.so.13 for tests: products as NVIDIA's documentation has them (matrices are
// column-major), computed one number at a time when their turn in the stream comes, in the played
// driver's memory. It ends the process on matrices outside of blocks, promised alignments that do
// not hold, and algorithms that it did not give.
#include <algorithm>
#include <map>

#include "tests/gpu_host/fake/fake_library.h"

using namespace kiln::fake_cuda;

namespace {

struct Operation {
  int compute = 0;
  int scale = 0;
  int transposed[2] = {0, 0};
  uint32_t epilogue = 1;
  const void* bias = nullptr;
  int bias_type = -1;
};
struct Matrix {
  Real type = Real::f32;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t step = 0;
  int32_t batch = 1;
  int64_t batch_step = 0;
};
struct Preference {
  uint64_t workspace = 0;
  uint32_t alignment[4] = {256, 256, 256, 256};
};
struct Algorithm {
  uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};
constexpr uint64_t kMagic = 0x6b696c6e6c740000u;
int products = 0;

bool as_real(int type, Real* to) {
  static const std::map<int, Real> all = {
      {0, Real::f32}, {1, Real::f64}, {2, Real::f16}, {14, Real::bf16}};
  const auto found = all.find(type);
  if (found == all.end()) return false;
  *to = found->second;
  return true;
}

// The rows and columns that a matrix has in the product.
int64_t rows_of(const Matrix& m, bool transposed) { return transposed ? m.columns : m.rows; }
int64_t columns_of(const Matrix& m, bool transposed) { return transposed ? m.rows : m.columns; }

bool fits(const Operation& op, const Matrix& a, const Matrix& b, const Matrix& d) {
  const bool ta = op.transposed[0] != 0, tb = op.transposed[1] != 0;
  return rows_of(a, ta) == d.rows && columns_of(b, tb) == d.columns &&
         columns_of(a, ta) == rows_of(b, tb) && a.step >= a.rows && b.step >= b.rows &&
         d.step >= d.rows && a.batch == d.batch && b.batch == d.batch && a.type == b.type &&
         a.type == d.type && (op.compute == 70) == (a.type == Real::f64);
}

void check_place(const void* address, const Matrix& m, uint64_t alignment) {
  const auto size = static_cast<int64_t>(size_of(m.type));
  const int64_t last = (m.batch - 1) * m.batch_step + (m.columns - 1) * m.step + m.rows;
  if (!kiln_fake_cuda_holds(address, static_cast<size_t>(last * size))) {
    library_violation("cublasLtMatmul: a matrix is not all in a block");
  }
  for (int64_t n = 0; n < std::min<int64_t>(m.batch, 2); ++n) {
    const auto at =
        reinterpret_cast<uintptr_t>(address) + static_cast<uintptr_t>(n * m.batch_step * size);
    if (at % alignment != 0)
      library_violation("cublasLtMatmul: a matrix is not aligned as promised");
  }
}

}  // namespace

FAKE kiln_fake_cublaslt_products() { return products; }

FAKE cublasLtCreate(void** handle) {
  static int one = 0;
  *handle = &one;
  return 0;
}
FAKE cublasLtMatmulDescCreate(Operation** to, int compute, int scale) {
  if (!(compute == 68 && scale == 0) && !(compute == 70 && scale == 1)) return 7;
  *to = new Operation;
  (*to)->compute = compute;
  (*to)->scale = scale;
  return 0;
}
FAKE cublasLtMatmulDescSetAttribute(Operation* op, int which, const void* value, size_t bytes) {
  const auto take = [&](auto& to) {
    if (bytes != sizeof to) return 7;
    std::memcpy(&to, value, bytes);
    return 0;
  };
  switch (which) {
    case 3:
      return take(op->transposed[0]);
    case 4:
      return take(op->transposed[1]);
    case 7:
      return take(op->epilogue);
    case 8:
      return take(op->bias);
    case 26:
      return take(op->bias_type);
    default:
      return 7;
  }
}
FAKE cublasLtMatmulDescDestroy(Operation* op) {
  delete op;
  return 0;
}
FAKE cublasLtMatrixLayoutCreate(Matrix** to, int type, uint64_t rows, uint64_t columns,
                                int64_t step) {
  Matrix m;
  if (!as_real(type, &m.type)) return 7;
  m.rows = static_cast<int64_t>(rows);
  m.columns = static_cast<int64_t>(columns);
  m.step = step;
  *to = new Matrix(m);
  return 0;
}
FAKE cublasLtMatrixLayoutSetAttribute(Matrix* m, int which, const void* value, size_t bytes) {
  if (which == 5 && bytes == 4) {
    std::memcpy(&m->batch, value, 4);
  } else if (which == 6 && bytes == 8) {
    std::memcpy(&m->batch_step, value, 8);
  } else {
    return 7;
  }
  return 0;
}
FAKE cublasLtMatrixLayoutDestroy(Matrix* m) {
  delete m;
  return 0;
}
FAKE cublasLtMatmulPreferenceCreate(Preference** to) {
  *to = new Preference;
  return 0;
}
FAKE cublasLtMatmulPreferenceSetAttribute(Preference* p, int which, const void* value,
                                          size_t bytes) {
  if (which == 1 && bytes == 8) {
    std::memcpy(&p->workspace, value, 8);
  } else if (which >= 5 && which <= 8 && bytes == 4) {
    std::memcpy(&p->alignment[which - 5], value, 4);
  } else {
    return 7;
  }
  return 0;
}
FAKE cublasLtMatmulPreferenceDestroy(Preference* p) {
  delete p;
  return 0;
}
FAKE cublasLtMatmulAlgoGetHeuristic(void*, Operation* op, Matrix* a, Matrix* b, Matrix* c,
                                    Matrix* d, Preference* p, int wanted, Heuristic* to,
                                    int* count) {
  *count = 0;
  if (wanted < 1 || c != d || !fits(*op, *a, *b, *d)) return 7;
  *to = {};
  to->algorithm.data[0] = kMagic;
  for (int k = 0; k < 4; ++k) to->algorithm.data[1 + k] = p->alignment[k];
  to->algorithm.data[5] = p->workspace;
  to->workspace = std::min<size_t>(p->workspace, 4096);
  *count = 1;
  return 0;
}
FAKE cublasLtMatmul(void*, Operation* op_, const void* alpha, const void* a, Matrix* a_,
                    const void* b, Matrix* b_, const void* beta, const void* c, Matrix* c_, void* d,
                    Matrix* d_, const Algorithm* algorithm, void* workspace, size_t workspace_bytes,
                    void* stream) {
  const Operation op = *op_;
  const Matrix ma = *a_, mb = *b_, md = *d_;
  if (algorithm->data[0] != kMagic) library_violation("cublasLtMatmul: an algorithm of nobody");
  if (!fits(op, ma, mb, md) || c != d || c_ != d_) return 7;
  check_place(a, ma, algorithm->data[1]);
  check_place(b, mb, algorithm->data[2]);
  check_place(d, md, algorithm->data[4]);
  if (workspace_bytes != 0 && !kiln_fake_cuda_holds(workspace, workspace_bytes)) {
    library_violation("cublasLtMatmul: the workspace is no block");
  }
  const bool wide = op.scale == 1;
  const double one = wide ? *static_cast<const double*>(alpha) : *static_cast<const float*>(alpha);
  const double zero = wide ? *static_cast<const double*>(beta) : *static_cast<const float*>(beta);
  if (one != 1.0 || zero != 0.0) library_violation("cublasLtMatmul: alpha and beta");
  if (op.epilogue == 4 &&
      !kiln_fake_cuda_holds(op.bias, static_cast<size_t>(md.rows) * size_of(md.type))) {
    library_violation("cublasLtMatmul: the bias is not all in a block");
  }
  ++products;
  kiln_fake_cuda_enqueue(stream, [=] {
    const int64_t depth = columns_of(ma, op.transposed[0] != 0);
    for (int64_t n = 0; n < md.batch; ++n) {
      for (int64_t j = 0; j < md.columns; ++j) {
        for (int64_t i = 0; i < md.rows; ++i) {
          double sum = 0;
          for (int64_t k = 0; k < depth; ++k) {
            const int64_t at = op.transposed[0] != 0 ? k + i * ma.step : i + k * ma.step;
            const int64_t bt = op.transposed[1] != 0 ? j + k * mb.step : k + j * mb.step;
            sum +=
                load(a, n * ma.batch_step + at, ma.type) * load(b, n * mb.batch_step + bt, mb.type);
          }
          if (op.epilogue == 4) sum += load(op.bias, i, md.type);
          store(d, n * md.batch_step + i + j * md.step, md.type, sum);
        }
      }
    }
  });
  return 0;
}
