// Every op case as a graph: captured forward and backward, and replayed on other values.
#include <map>
#include <set>

#include <doctest/doctest.h>

#include "kiln/graph/capture.h"
#include "kiln/graph/passes/passes.h"
#include "kiln/graph/plan.h"
#include "kiln/kiln.h"
#include "kiln/tensor/tensor_impl.h"
#include "tests/ops/case.h"

namespace kiln::ops {
namespace {

using graph::Capture;
using graph::Plan;

bool is_differentiable(const Case& c, const Input& input, DType dtype) {
  const bool follows = input.kind == Input::Kind::real || input.kind == Input::Kind::complex;
  return follows && c.derivatives > 0 && (is_floating_point(dtype) || is_complex(dtype));
}

// The results of a case and the gradients of its inputs.
Tensors run(const Case& c, DType dtype, const Tensors& given) {
  Tensors inputs = given;
  Tensors tracked;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!is_differentiable(c, c.inputs[i], dtype)) continue;
    inputs[i] = inputs[i].detach().requires_grad_();
    tracked.push_back(inputs[i]);
  }
  Tensors out;
  Tensors roots;
  for (const Tensor& y : c.call(inputs)) {
    if (!y.defined()) continue;
    out.push_back(y.detach());
    if (!y.requires_grad()) continue;
    roots.push_back((is_complex(y.dtype()) ? view_as_real(y) : y).sum());
  }
  if (roots.empty() || tracked.empty()) return out;
  for (const Tensor& g : grad(roots, tracked, {.allow_unused = true})) {
    if (g.defined()) out.push_back(g);
  }
  return out;
}

// The same inputs, from the last element to the first: other values of the same kind.
Tensors turned(const Tensors& inputs) {
  Tensors out;
  for (const Tensor& x : inputs) {
    Tensor y = x;
    if (x.dim() > 0 && !is_complex(x.dtype())) y = x.flip(all_dims(x.dim())).contiguous();
    out.push_back(y.is_same(x) ? x.clone() : y);
  }
  return out;
}

std::vector<ErasedTensor> inner_of(const Tensors& xs) {
  std::vector<ErasedTensor> out;
  for (const Tensor& x : xs) out.push_back(kiln::detail::parts_or_value("test", x).inner);
  return out;
}

// The bits of a tensor of the backend.
std::vector<double> numbers(const ErasedTensor& x) {
  return kiln::detail::wrap(x).to_data().to_doubles();
}
bool same_numbers(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])))) return false;
  }
  return true;
}

using Names = std::map<std::string, std::set<std::string>>;

std::string first_words(const std::string& text) {
  std::string out = text.substr(0, text.find(" of a tensor"));
  return out;
}

// Captures a case, and replays it on other values; what stands in the way goes into `refused`.
void check_case(const Case& c, DType dtype, Names& refused) {
  const Tensors first = make_inputs(c, c.inputs, dtype);
  const Tensors second = turned(first);
  const Tensors untouched = turned(second);
  manual_seed(5);
  RandomTape tape;
  graph::Graph captured;
  {
    Capture capture;
    for (const ErasedTensor& x : inner_of(first)) capture.add_input(x);
    const Tensors results = run(c, dtype, first);
    if (!capture.failure().empty()) {
      refused[first_words(capture.failure())].insert(c.name);
      return;
    }
    captured = capture.finish(inner_of(results));
  }
  tape.finish();
  if (captured.inputs.size() != first.size()) return;  // one tensor twice
  const Plan plan(graph::optimized(captured));
  const Plan less(graph::optimized(std::move(captured), {.memory_budget = 0.0}));

  for (int round = 0; round < 2; ++round) {
    const Tensors given = turned(round == 0 ? second : untouched);
    Tensors eager;
    std::string wrong;
    manual_seed(77);
    try {
      eager = run(c, dtype, turned(turned(given)));
    } catch (const Error& error) {
      wrong = error.what();
    }
    const RandomStream end = default_generator().state();
    manual_seed(77);
    tape.advance();
    graph::Plan::Results replayed;
    try {
      replayed = (round == 0 ? plan : less).run(inner_of(turned(turned(given))), &tape);
    } catch (const graph::ValueChanged& changed) {
      refused["changed: " + first_words(changed.what)].insert(c.name);
      return;
    } catch (const Error& error) {
      CHECK(std::string(error.what()) == wrong);
      return;
    }
    REQUIRE(wrong == "");
    CHECK(default_generator().state().offset == end.offset);
    REQUIRE(replayed.size() == eager.size());
    const std::vector<ErasedTensor> expected = inner_of(eager);
    for (size_t i = 0; i < expected.size(); ++i) {
      REQUIRE(replayed[i]->shape() == expected[i]->shape());
      REQUIRE(replayed[i]->dtype() == expected[i]->dtype());
      if (expected[i]->dtype() == DType::q8 || c.name.find("empty") != std::string::npos) continue;
      CHECK(same_numbers(numbers(replayed[i]), numbers(expected[i])));
    }
  }
}

// What is no graph, with what stands in the way.
const std::set<std::string>& known_refusals() {
  static const std::set<std::string> names = {
      // LAPACK computes on the host.
      "cholesky_inverse", "cholesky_solve", "geqrf", "linalg.cholesky", "linalg.cholesky_ex",
      "linalg.cond", "linalg.det", "linalg.eig", "linalg.eigh", "linalg.eigvals", "linalg.eigvalsh",
      "linalg.inv", "linalg.inv_ex", "linalg.ldl_solve", "linalg.lstsq", "linalg.lu",
      "linalg.lu_factor", "linalg.lu_solve", "linalg.matrix_exp", "linalg.matrix_norm",
      "linalg.matrix_power", "linalg.matrix_rank", "linalg.norm", "linalg.pinv", "linalg.qr",
      "linalg.slogdet", "linalg.solve", "linalg.solve_ex", "linalg.solve_triangular", "linalg.svd",
      "linalg.svdvals", "linalg.tensorinv", "linalg.tensorsolve", "logdet", "lu_unpack", "ormqr",
      "svd",
      // Labels that stand in one row are sorted by lengths.
      "nn.functional.ctc_loss",
      // The result's size or order hangs on values.
      "histogramdd", "nn.functional.embedding_bag", "repeat_interleave", "unique",
      "unique_consecutive",
      // Draws by rejection on the host.
      "binomial", "multinomial", "poisson",
      // Its windows are found on the host.
      "nn.functional.max_pool3d"};
  return names;
}

TEST_CASE("op cases: a replay on other values is eager computing, bit for bit") {
  REQUIRE(!cases().empty());
  Names refused;
  for (const Case& c : cases()) {
    for (const DType dtype : c.dtype_list) {
      INFO(describe(c, dtype));
      try {
        check_case(c, dtype, refused);
      } catch (const std::exception& error) {
        FAIL_CHECK(describe(c, dtype), ": ", std::string(error.what()));
      }
    }
  }
  std::set<std::string> found;
  for (const auto& [why, names] : refused) {
    found.insert(names.begin(), names.end());
    for (const std::string& name : names) {
      INFO(name, ": ", why);
      CHECK(known_refusals().contains(name));
    }
  }
  for (const std::string& name : known_refusals()) {
    INFO(name, " is in the list and can be a graph");
    CHECK(found.contains(name));
  }
}

}  // namespace
}  // namespace kiln::ops
