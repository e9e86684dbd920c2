// Backends without values against Cpu: shapes, dtypes and strides of every row.
#include <map>
#include <set>

#include "kiln/backend/conformance/conformance.h"
#include "kiln/backend/conformance/runner.h"
#include "kiln/backend/cpu/cpu.h"

namespace kiln {
namespace conformance {
namespace {

constinit const BackendTable kTable = detail::make_table<Cpu>();
constinit const ViewTable kViews = detail::make_views<Cpu>();

// "float32 [2, 3] strides [3, 1]" of what Runner::without_values() gives.
std::string text_of(const TensorData& portrait) {
  const auto numbers = portrait.as<int64_t>();
  const auto rank = static_cast<size_t>(numbers[1]);
  const Shape shape(numbers.subspan(2, rank));
  std::string out = concat(static_cast<DType>(numbers[0]), " ", shape);
  if (numbers.size() > 2 + rank) out += concat(" strides ", Strides(numbers.subspan(2 + rank)));
  return out;
}

std::string difference(const Outcome& want, const Outcome& got) {
  if (want.outputs.size() != got.outputs.size()) return "another number of results";
  for (size_t i = 0; i < want.outputs.size(); ++i) {
    if (compare_identical(want.outputs[i], got.outputs[i]).empty()) continue;
    return concat("result ", static_cast<int64_t>(i), " is ", text_of(got.outputs[i]),
                  "; expected ", text_of(want.outputs[i]));
  }
  return {};
}

// What is wrong with one case, or nothing.
std::string wrong_with(const Case& c, Layout layout, const Runner& backend, const Runner& cpu) {
  const Outcome want = cpu.run(c, layout, Handing::borrowed);
  // It throws for its values, of which the backend knows nothing.
  if (!want.error.empty()) return {};
  const Outcome got = backend.run(c, layout, Handing::borrowed);
  if (got.error.empty()) {
    const std::string what = difference(want, got);
    return what.empty() ? what : concat(describe(c), ", ", layout, ": ", what);
  }
  return concat(describe(c), ": ",
                got.error.find("needs values") != std::string::npos ? "needs values" : got.error);
}

}  // namespace
}  // namespace conformance

std::vector<ConformanceFailure> run_shape_conformance(const BackendTable& table,
                                                      const ViewTable& views, Device device,
                                                      const ConformanceOptions& options) {
  using namespace conformance;
  const Runner backend = Runner(table, views, device).without_values();
  const Runner cpu = Runner(kTable, kViews, kCpu).without_values();
  std::vector<ConformanceFailure> out;
  std::set<std::string> covered;
  std::map<std::string, int> count;
  for_each_case(options.float_dtypes, options.int_dtypes, [&](const Case& c) {
    if (c.op.find(options.only) == std::string::npos) return;
    covered.insert(c.op);
    // What leaves the backend is no tensor.
    if (c.op.find("_into_data") != std::string::npos || c.op == "q_scheme") return;
    for (const auto layout : {conformance::Layout::contiguous, conformance::Layout::permuted}) {
      const std::string what = wrong_with(c, layout, backend, cpu);
      if (what.empty() || ++count[c.op] > options.max_failures_per_op) continue;
      out.push_back({c.op, what});
    }
  });
  for (const OpInfo& row : op_table()) {
    if (std::string(row.name).find(options.only) != std::string::npos &&
        !covered.contains(row.name)) {
      out.push_back({row.name, "the suite has no case for this op"});
    }
  }
  return out;
}

}  // namespace kiln
