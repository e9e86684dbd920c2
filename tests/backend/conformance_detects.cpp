// The conformance suite finds what it is there to find: backends that are Reference but for one
// fault.
#include <algorithm>
#include <cstring>

#include <doctest/doctest.h>

#include "kiln/backend/conformance/conformance.h"
#include "kiln/backend/host_layout.h"
#include "kiln/backend/reference/reference.h"
#include "kiln/core/parallel.h"

using namespace kiln;

namespace {

using Tensor = Arg<HostHandle>;

template <class Bk>
bool finds_fault(const std::string& op, const std::string& words) {
  const ConformanceOptions options{.float_dtypes = {f32}, .int_dtypes = {i64}, .only = op};
  for (const ConformanceFailure& failure : run_conformance<Bk>(kReference, options)) {
    INFO(to_string(failure));
    CHECK(failure.op == op);
    if (failure.what.find(words) != std::string::npos) return true;
  }
  return false;
}

struct WrongValue : Reference {
  static HostHandle float_silu(Tensor x) { return Reference::float_sigmoid(x); }
};

struct WrongDtype : Reference {
  static HostHandle float_argmax(Tensor x, int dim, bool keepdim) {
    return Reference::int_cast(Reference::float_argmax(x, dim, keepdim), i32);
  }
};

struct LosesNan : Reference {
  static HostHandle float_maximum(Tensor x, Tensor y) {
    return Reference::float_mask_where(y, Reference::float_greater(x, y), x);
  }
};

struct IgnoresStrides : Reference {
  static HostHandle float_neg(Tensor x) {
    const Strides repeated = Shape::filled(x->shape().rank(), 0);
    return Reference::float_neg(
        x->is_contiguous() ? x.get() : host::view(x, x->shape(), repeated, x->offset()));
  }
};

struct WritesBorrowed : Reference {
  static HostHandle float_abs(Tensor x) { return Reference::float_abs(Tensor::in_place(x.get())); }
};

struct StealsSharedMemory : Reference {
  static HostHandle float_add(Tensor x, Tensor y) {
    return Reference::float_add(x.is_donated() ? Tensor::in_place(x.get()) : x, y);
  }
};

struct WritesUncounted : Reference {
  static HostHandle float_exp(Tensor x) {
    const HostHandle out = Reference::float_exp(x.get());
    if (!x.is_in_place() || !x->is_contiguous()) return out;
    std::memcpy(x->data(), out->data(), static_cast<size_t>(x->numel()) * size_of(x->dtype()));
    return x.get();
  }
};

struct WritesAndThrows : Reference {
  static HostHandle int_div(Tensor x, Tensor y) {
    try {
      return Reference::int_div(x, y);
    } catch (const ValueError&) {
      if (x.is_in_place()) Reference::int_fill(x, Scalar(0));
      throw;
    }
  }
};

struct MissesIndexError : Reference {
  static HostHandle float_index_select(Tensor x, int dim, Tensor index) {
    return Reference::float_index_select(
        x, dim, Reference::int_clamp(index, 0, std::max<int64_t>(x->shape()[dim] - 1, 0)));
  }
};

struct CopiesSlices : Reference {
  static HostHandle float_slice(Tensor x, int dim, Range range) {
    const HostHandle view = Reference::float_slice(x, dim, range);
    return host::from_data(host::into_data(view), view->device());
  }
};

// Backends that lie about where their tensors are.
struct ForgetsOffsets : Reference {
  static Layout layout(const HostHandle& x) {
    Layout layout = host::layout(x);
    layout.offset = 0;
    return layout;
  }
};

struct SaysRowMajor : Reference {
  static Layout layout(const HostHandle& x) {
    thread_local Strides rows[8];
    thread_local int next = 0;
    Strides& strides = rows[++next % 8] = contiguous_strides(x->shape());
    return {&strides, x->offset(), x->storage().get(), host::layout(x).capacity};
  }
};

struct SaysShared : Reference {
  static Layout layout(const HostHandle& x) {
    static const int everywhere = 0;
    Layout layout = host::layout(x);
    layout.storage = &everywhere;
    return layout;
  }
};

struct SaysAlone : Reference {
  static Layout layout(const HostHandle& x) {
    Layout layout = host::layout(x);
    layout.storage = x.get();
    return layout;
  }
};

struct SaysNothing : Reference {
  static Layout layout(const HostHandle&) { return {}; }
};

struct MissesPlaces : Reference {
  static HostHandle as_strided(const HostHandle& x, const Shape& shape, const Strides& strides,
                               int64_t) {
    return host::view(x, shape, strides, 0);
  }
};

struct IsNeverContiguous : Reference {
  static HostHandle float_contiguous(Tensor x) { return x.get(); }
};

struct SharesData : Reference {
  static TensorData float_into_data(Tensor x) {
    if (!x->is_contiguous() || x->numel() == 0) return Reference::float_into_data(x);
    return TensorData(x->shape(), x->dtype(), x->storage(),
                      static_cast<size_t>(x->offset()) * size_of(x->dtype()));
  }
};

struct CountsThreads : Reference {
  static HostHandle float_sum(Tensor x, const Dims& dims, bool keepdim) {
    const HostHandle sum = Reference::float_sum(x, dims, keepdim);
    if (num_threads() == 1 || x->numel() < 30000) return sum;
    return Reference::float_mul_scalar(sum, Scalar(1.0 + 0x1p-22));
  }
};

}  // namespace

TEST_CASE("the suite finds wrong results") {
  CHECK(finds_fault<WrongValue>("float_silu", "expected"));
  CHECK(finds_fault<WrongDtype>("float_argmax", "dtype is int32; expected int64"));
  CHECK(finds_fault<LosesNan>("float_maximum", "expected nan"));
  CHECK(finds_fault<IgnoresStrides>("float_neg", "permuted"));
  CHECK(finds_fault<MissesIndexError>("float_index_select", "no error; expected IndexError"));
}

TEST_CASE("the suite finds memory that is written when it should not be") {
  CHECK(finds_fault<WritesBorrowed>("float_abs", "borrowed operand after"));
  CHECK(finds_fault<StealsSharedMemory>("float_add", "donated while a"));
  CHECK(finds_fault<WritesUncounted>("float_exp", "without a new version"));
  CHECK(finds_fault<WritesAndThrows>("int_div", "which throws, operand after, in place"));
  CHECK(finds_fault<SharesData>("float_into_data", "written afterwards"));
}

TEST_CASE("the suite finds views that are none") {
  CHECK(finds_fault<CopiesSlices>("float_slice", "view was written"));
}

TEST_CASE("the suite finds tensors that are not where their backend says") {
  CHECK(finds_fault<ForgetsOffsets>("float_slice", "the layout says that element 0 lies at 0"));
  CHECK(finds_fault<SaysRowMajor>("int_permute", "the layout says that element"));
  CHECK(finds_fault<SaysShared>("float_reshape", "its layout says that it shares"));
  CHECK(finds_fault<SaysAlone>("bool_slice", "its layout says that it does not share"));
  CHECK(finds_fault<SaysNothing>("float_as_strided", "layout is not known"));
  CHECK(finds_fault<MissesPlaces>("float_as_strided", "offset 0; expected"));
  CHECK(finds_fault<IsNeverContiguous>("float_contiguous", "expected row-major"));
}

TEST_CASE("the suite finds results that depend on the number of threads") {
  if (max_num_threads() > 1)
    CHECK(finds_fault<CountsThreads>("float_sum", "one thread against many"));
}
