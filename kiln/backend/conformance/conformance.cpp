#include "kiln/backend/conformance/conformance.h"

#include <algorithm>
#include <map>
#include <set>

#include "kiln/backend/conformance/case.h"
#include "kiln/backend/conformance/checks.h"
#include "kiln/backend/conformance/runner.h"
#include "kiln/backend/reference/reference.h"
#include "kiln/core/parallel.h"

namespace kiln {

std::string to_string(const ConformanceFailure& failure) {
  return failure.op + ": " + failure.what;
}

namespace conformance {
namespace {

constinit const BackendTable kReferenceTable = detail::make_table<Reference>();
constinit const ViewTable kReferenceViews = detail::make_views<Reference>();

// Sets the number of threads for a while.
class ThreadCount {
 public:
  explicit ThreadCount(int n) : before_(num_threads()) { set_num_threads(n); }
  ~ThreadCount() { set_num_threads(before_); }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  int before_;
};

class Suite {
 public:
  Suite(const BackendTable& table, const ViewTable& views, Device device,
        const ConformanceOptions& options)
      : runner_(table, views, device),
        reference_(kReferenceTable, kReferenceViews, kReference),
        options_(options) {}

  std::vector<ConformanceFailure> run() {
    std::set<std::string> covered;
    for_each_case(options_.float_dtypes, options_.int_dtypes, [&](const Case& c) {
      covered.insert(c.op);
      if (wanted(c.op)) check_case(c);
    });
    check_coverage(covered);
    if (options_.fast) {
      for (const Case& c : large_cases()) {
        if (wanted(c.op)) check_threads(c);
      }
    }
    std::vector<DType> dtypes = options_.float_dtypes;
    dtypes.insert(dtypes.end(), options_.int_dtypes.begin(), options_.int_dtypes.end());
    dtypes.push_back(bool_);
    for (DType dtype : dtypes) {
      for (const auto check : {check_memory, check_layouts}) {
        for (const ConformanceFailure& failure : check(runner_, dtype)) {
          if (wanted(failure.op)) fail(failure.op, failure.what);
        }
      }
    }
    return std::move(failures_);
  }

 private:
  bool wanted(const std::string& op) const {
    if (std::ranges::find(options_.but, op) != options_.but.end()) return false;
    size_t begin = 0;
    for (;;) {
      const size_t end = options_.only.find('|', begin);
      if (op.find(options_.only.substr(begin, end - begin)) != std::string::npos) return true;
      if (end == std::string::npos) return false;
      begin = end + 1;
    }
  }

  void fail(const std::string& op, const std::string& what) {
    if (++count_[op] <= options_.max_failures_per_op) failures_.push_back({op, what});
  }

  void check_coverage(const std::set<std::string>& covered) {
    for (const OpInfo& row : op_table()) {
      if (wanted(row.name) && !covered.contains(row.name)) {
        fail(row.name, "the suite has no case for this op");
      }
    }
  }

  void check_case(const Case& c) {
    const Outcome want = expected(c, Layout::contiguous);
    const Outcome plain = check_layout(c, Layout::contiguous, want, nullptr);
    if (!plain.error.empty()) return check_untouched(c, plain);
    if (plain.outputs.empty()) {
      // The op writes its operands: they, and what lies around them, are its result.
      for (Layout layout : {Layout::permuted, Layout::sliced}) {
        check_layout(c, layout, expected(c, layout), nullptr);
      }
      if (elements(plain) >= kFewElements) check_threads(c);
      return;
    }
    const Outcome* same_bits = c.elementwise && !c.values_undefined ? &plain : nullptr;
    check_layout(c, Layout::permuted, want, same_bits);
    check_layout(c, Layout::sliced, want, same_bits);
    if (c.expandable) {
      check_layout(c, Layout::expanded, expected(c, Layout::expanded), nullptr);
    }
    if (c.values_undefined) return;
    check_donated(c, plain);
    check_in_place(c, plain);
    if (elements(plain) >= kFewElements) check_threads(c);
  }

  Outcome expected(const Case& c, Layout layout) const {
    return reference_.run(c, layout, Handing::borrowed);
  }

  // Against what Reference gives, and, where given, to the bit against the backend's own result
  // with contiguous operands.
  Outcome check_layout(const Case& c, Layout layout, const Outcome& want,
                       const Outcome* same_bits) {
    Outcome got = runner_.run(c, layout, Handing::borrowed);
    const std::string where = concat(describe(c), ", ", layout);
    if (got.error != want.error) {
      fail(c.op, concat(where, ": ", error_text(got), "; expected ", error_text(want)));
      if (got.error.empty()) got.error = "none";
      return got;
    }
    if (!got.error.empty()) return got;
    if (c.values_undefined) {
      const TensorData& w = want.outputs[0];
      const TensorData& g = got.outputs[0];
      if (w.shape() != g.shape() || w.dtype() != g.dtype()) {
        fail(c.op, concat(where, ": ", g.dtype(), " ", g.shape(), "; expected ", w.dtype(), " ",
                          w.shape()));
      }
      return got;
    }
    expect_close(c, where, want.outputs, got.outputs);
    if (want.outputs.empty()) {
      expect_close(c, concat(where, ", operand after"), want.after, got.after);
    } else {
      expect_identical(c, concat(where, ", borrowed operand after"), got.before, got.after);
    }
    if (same_bits != nullptr) {
      expect_identical(c, concat(where, ", against contiguous"), same_bits->outputs, got.outputs);
    }
    return got;
  }

  // An op that throws has written nothing.
  void check_untouched(const Case& c, const Outcome& plain) {
    const std::string where = concat(describe(c), ", which throws, operand after");
    expect_identical(c, where, plain.before, plain.after);
    if (!std::holds_alternative<Operand>(c.arguments.at(0))) return;
    const Outcome got = runner_.run(c, Layout::contiguous, Handing::in_place);
    expect_identical(c, where + ", in place", got.before, got.after);
  }

  void check_donated(const Case& c, const Outcome& plain) {
    const Outcome got = runner_.run(c, Layout::contiguous, Handing::donated);
    const std::string where = concat(describe(c), ", donated");
    if (!got.error.empty()) return fail(c.op, concat(where, ": ", error_text(got)));
    expect_identical(c, where, plain.outputs, got.outputs);
  }

  void check_in_place(const Case& c, const Outcome& plain) {
    const auto* first = c.arguments.empty() ? nullptr : std::get_if<Operand>(&c.arguments[0]);
    if (first == nullptr || first->data.dtype() == DType::q8) return;
    for (Layout layout : {Layout::contiguous, Layout::sliced}) {
      const Outcome got = runner_.run(c, layout, Handing::in_place);
      const std::string where = concat(describe(c), ", in place, ", layout);
      if (!got.error.empty()) {
        fail(c.op, concat(where, ": ", error_text(got)));
        continue;
      }
      if (c.elementwise) {
        expect_identical(c, where, plain.outputs, got.outputs);
      } else {
        expect_close(c, where, plain.outputs, got.outputs);
      }
      check_in_place_memory(c, where, got, layout);
    }
  }

  // Either the backend left the operand alone, or it holds the result and nothing around it
  // changed.
  void check_in_place_memory(const Case& c, const std::string& where, const Outcome& got,
                             Layout layout) {
    if (got.after.empty() || compare_identical(got.before[0], got.after[0]).empty()) return;
    const std::string what = compare_identical(got.outputs[0], got.view_after);
    if (!what.empty()) return fail(c.op, concat(where, ", operand after: ", what));
    if (!got.version_rose && counts_versions()) {
      fail(c.op, concat(where, ": the operand was written without a new version"));
    }
    TensorData wanted_memory = got.outputs[0];
    if (layout == Layout::sliced && wanted_memory.shape().rank() > 0) {
      std::vector<Range> ranges;
      wanted_memory = embedded(wanted_memory, &ranges);
    }
    expect_identical(c, concat(where, ", memory around the operand"), {wanted_memory},
                     {got.after[0]});
    for (size_t i = 1; i < got.after.size(); ++i) {
      expect_identical(c, concat(where, ", other operand"), {got.before[i]}, {got.after[i]});
    }
  }

  // Loops over less stay on one thread anyway.
  static constexpr int64_t kFewElements = 4096;

  void check_threads(const Case& c) {
    if (max_num_threads() == 1) return;
    const ThreadCount one(1);
    const Outcome single = runner_.run(c, Layout::contiguous, Handing::borrowed);
    set_num_threads(max_num_threads());
    const Outcome many = runner_.run(c, Layout::contiguous, Handing::borrowed);
    const std::string where = concat(describe(c), ", one thread against many");
    expect_identical(c, where, single.outputs, many.outputs);
    if (single.outputs.empty()) expect_identical(c, where, single.after, many.after);
  }

  static int64_t elements(const Outcome& outcome) {
    int64_t most = 0;
    for (const auto* list : {&outcome.outputs, &outcome.before}) {
      for (const TensorData& data : *list) most = std::max(most, data.numel());
    }
    return most;
  }

  // Whether the backend tells when a tensor was written.
  bool counts_versions() const {
    const ErasedTensor x = runner_.from_data(TensorData(Shape{2}, f32));
    const uint32_t before = runner_.table().version(x);
    runner_.table().float_fill(x, Scalar(1));
    return runner_.table().version(x) != before;
  }

  static std::string error_text(const Outcome& outcome) {
    return outcome.error.empty() ? "no error" : outcome.error;
  }

  void expect_close(const Case& c, const std::string& where, const std::vector<TensorData>& want,
                    const std::vector<TensorData>& got) {
    for (size_t i = 0; i < want.size(); ++i) {
      const std::string what = compare(want[i], got[i], c.tolerance);
      if (!what.empty()) return fail(c.op, concat(where, ": ", output_name(want, i), what));
    }
  }

  void expect_identical(const Case& c, const std::string& where,
                        const std::vector<TensorData>& want, const std::vector<TensorData>& got) {
    for (size_t i = 0; i < want.size(); ++i) {
      const std::string what = compare_identical(want[i], got[i]);
      if (!what.empty()) return fail(c.op, concat(where, ": ", output_name(want, i), what));
    }
  }

  static std::string output_name(const std::vector<TensorData>& all, size_t i) {
    return all.size() == 1 ? "" : concat("result ", static_cast<int64_t>(i), ", ");
  }

  Runner runner_;
  Runner reference_;
  ConformanceOptions options_;
  std::vector<ConformanceFailure> failures_;
  std::map<std::string, int> count_;
};

}  // namespace
}  // namespace conformance

std::vector<ConformanceFailure> run_conformance(const BackendTable& table, const ViewTable& views,
                                                Device device, const ConformanceOptions& options) {
  return conformance::Suite(table, views, device, options).run();
}

}  // namespace kiln
