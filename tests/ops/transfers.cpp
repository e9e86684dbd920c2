// Every op case on a device whose memory is not the host's, forward and backward: what reads its
// tensors back. Those that do stand in the lists of host_reads.h; a name that no longer does has to
// leave its list.
#include <set>

#include <doctest/doctest.h>

#include "tests/ops/case.h"
#include "tests/ops/counting_backend.h"
#include "tests/ops/host_reads.h"

namespace kiln::ops {
namespace {

const DeviceType kCounting = register_backend<Counting>("counting");

bool is_differentiable(const Case& c, const Input& input, DType dtype) {
  const bool follows = input.kind == Input::Kind::real || input.kind == Input::Kind::complex;
  return follows && c.derivatives > 0 && (is_floating_point(dtype) || is_complex(dtype));
}

void run(const Case& c, DType dtype) {
  Tensors inputs = make_inputs(c, c.inputs, dtype, Device(kCounting));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (is_differentiable(c, c.inputs[i], dtype)) inputs[i] = inputs[i].detach().requires_grad_();
  }
  transfers = {};
  for (const Tensor& y : c.call(inputs)) {
    if (!y.defined() || !y.requires_grad()) continue;
    const Tensor parts = is_complex(y.dtype()) ? view_as_real(y) : y;
    static_cast<void>(parts.sum().backward({}, true));
  }
}

void check_list(const char* what, const std::set<std::string>& found, const Names& names) {
  for (const std::string& name : found) {
    INFO(name, " reads ", std::string(what), " back and is not in the list");
    CHECK(names.contains(name));
  }
  for (const auto& [name, why] : names) {
    INFO(name, " (", std::string(why), ") is in the list and reads no ", std::string(what));
    CHECK(found.contains(name));
  }
}

TEST_CASE("op cases: what is read back from a device stands in a list") {
  REQUIRE(!cases().empty());
  std::set<std::string> whole, scalars;
  for (const Case& c : cases()) {
    for (const DType dtype : c.dtype_list) {
      INFO(describe(c, dtype));
      try {
        run(c, dtype);
      } catch (const std::exception& error) {
        FAIL_CHECK(describe(c, dtype), ": ", std::string(error.what()));
      }
      if (transfers.whole > 0) {
        whole.insert(c.name);
        if (is_complex(dtype)) {
          INFO("complex tensors are read back outside linear algebra");
          CHECK((read_whole().contains(c.name) && read_whole().at(c.name) == kLapack));
        }
      } else if (transfers.scalars > 0) {
        scalars.insert(c.name);
      }
    }
  }
  for (const std::string& name : whole) scalars.erase(name);
  check_list("whole tensors", whole, read_whole());
  check_list("single numbers", scalars, read_scalars());
  CHECK(read_whole().size() <= 45);
  CHECK(read_scalars().size() <= 35);
}

}  // namespace
}  // namespace kiln::ops
