// The conformance suite: holds a backend, op by op, against the reference backend.
//
//   const auto failures = kiln::run_conformance<MyBackend>(device);
//   for (const auto& failure : failures) std::cerr << to_string(failure) << '\n';
//
// Every row of ops.def has cases (a row without one is a failure of its own). Each case runs
//   - with contiguous, permuted, sliced and expanded operands: what Reference gives, within the
//     case's tolerance; and the same bits in every layout where the op works element by element;
//   - with borrowed operands, which must not change, and with donated ones: the same bits;
//   - in place: a backend may ignore that, else a view's memory must hold the result;
//   - at one thread and at many: the same bits.
// Beyond the table it checks what Backend promises of views, of data that enters and leaves, and of
// operands that overlap; and of a backend that declares layouts, that every view lies and writes
// where its layout says. It needs no test framework. It is a library
// of its own: link kiln::conformance beside kiln::kiln.
#pragma once

#include <string>
#include <vector>

#include "kiln/backend/dispatch/register.h"

namespace kiln {

struct ConformanceFailure {
  std::string op;
  std::string what;
};
std::string to_string(const ConformanceFailure& failure);

struct ConformanceOptions {
  std::vector<DType> float_dtypes = {DType::f64, DType::f32, DType::f16, DType::bf16};
  std::vector<DType> int_dtypes = {DType::i64, DType::i32, DType::i16, DType::i8, DType::u8};
  // Run the ops whose name contains this, or one of these: "_sum|_amax"; and not these ops.
  std::string only = {};
  std::vector<std::string> but = {};
  bool fast = false;            // the backend is: also compare thread counts on large products
  int max_failures_per_op = 3;  // how many to report of one op
};

// The same for a backend of which only its tables are known. Its tensors live on `device`.
std::vector<ConformanceFailure> run_conformance(const BackendTable& table, const ViewTable& views,
                                                Device device,
                                                const ConformanceOptions& options = {});

// Holds a backend that computes no values to Cpu: whether each row of the table gives
// results of the same shape, dtype and strides. A row that throws NotImplementedError is reported
// as one that "needs values".
std::vector<ConformanceFailure> run_shape_conformance(const BackendTable& table,
                                                      const ViewTable& views, Device device,
                                                      const ConformanceOptions& options = {});

template <class Bk>
std::vector<ConformanceFailure> run_shape_conformance(Device device,
                                                      const ConformanceOptions& options = {}) {
  check_backend<Bk>();
  static constinit const BackendTable table = detail::make_table<Bk>();
  static constinit const ViewTable views = detail::make_views<Bk>();
  return run_shape_conformance(table, views, device, options);
}

template <class Bk>
std::vector<ConformanceFailure> run_conformance(Device device,
                                                const ConformanceOptions& options = {}) {
  check_backend<Bk>();
  if constexpr (!Backend<Bk>) {
    return {};  // one message is enough
  } else {
    static constinit const BackendTable table = detail::make_table<Bk>();
    static constinit const ViewTable views = detail::make_views<Bk>();
    return run_conformance(table, views, device, options);
  }
}

}  // namespace kiln
