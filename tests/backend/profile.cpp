// The profiler: what it counts, what it writes, and that it leaves no trace.
#include "kiln/backend/dispatch/profile.h"

#include <thread>

#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/core/json.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/nn/losses.h"
#include "kiln/tensor/ops.h"
#include "tests/support/temp_dir.h"

using namespace kiln;

namespace {

const ProfileRow* find(const std::vector<ProfileRow>& rows, const std::string& op) {
  for (const ProfileRow& row : rows) {
    if (row.op == op) return &row;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("profile: counts, bytes and allocations of every op, backward included") {
  const Tensor w = ones({8, 16}).requires_grad_();
  const Tensor x = ones({4, 16}), y = ones({4, 8});
  Profile profile;
  for (int i = 0; i < 3; ++i)
    functional::mse_loss(functional::linear(x, w), y).backward_accumulate();
  const std::vector<ProfileRow> rows = profile.rows();
  profile.stop();
  const ProfileRow* linear = find(rows, "float_linear");
  REQUIRE(linear != nullptr);
  CHECK(linear->count == 3);
  CHECK(linear->seconds > 0.0);
  CHECK(linear->bytes == 3 * 4 * (4 * 16 + 8 * 16 + 4 * 8));
  CHECK(linear->allocations >= 3);
  REQUIRE(find(rows, "float_matmul") != nullptr);  // the gradient of the weight
  CHECK(find(rows, "float_matmul")->count == 3);
  CHECK(linear->flops == 3 * 2 * 4 * 16 * 8);
  CHECK(find(rows, "float_matmul")->flops == 3 * 2 * 4 * 16 * 8);
  CHECK(find(rows, "float_div_scalar")->flops == 0);
  for (size_t i = 1; i < rows.size(); ++i) CHECK(rows[i - 1].seconds >= rows[i].seconds);
  const std::string table = profile.table();
  CHECK(table.find("float_linear") != std::string::npos);
  CHECK(table.find("total") != std::string::npos);
  CHECK(table.find("Gflop/s") != std::string::npos);
}

TEST_CASE("profile: scopes nest, end, and see every thread") {
  const Tensor x = ones({2, 2});
  Profile outer;
  x + x;
  {
    Profile inner;
    std::thread([&] { x* x; }).join();
    CHECK(find(inner.rows(), "float_mul")->count == 1);
    CHECK(find(inner.rows(), "float_add") == nullptr);
  }
  x - x;
  outer.stop();
  x + x;
  CHECK(find(outer.rows(), "float_add")->count == 1);
  CHECK(find(outer.rows(), "float_mul")->count == 1);
  CHECK(find(outer.rows(), "float_sub")->count == 1);
  const Profile next;
  CHECK(next.rows().empty());
  CHECK(find(outer.rows(), "float_add")->count == 1);
}

TEST_CASE("profile: an op that throws is counted, and results are the same") {
  const Tensor x = ones({3}), index = tensor({0, 7}).to(i64);
  const Tensor want = exp(x);
  Profile profile;
  CHECK(exp(x).equal(want));
  CHECK_THROWS_AS(x.index_select(0, index), IndexError);
  CHECK(find(profile.rows(), "float_exp")->count == 1);
}

TEST_CASE("profile: the trace is JSON as Chrome reads it") {
  const test::TempDir dir;
  const Tensor x = ones({2, 3});
  Profile profile;
  Tensor y = x + x;
  y = exp(y);
  profile.stop();
  const std::string path = dir.path("trace.json");
  profile.write_trace(path);
  const Json json = decode_json(test::read_bytes(path));
  const Json* list = json.find("traceEvents");
  REQUIRE(list != nullptr);
  int events = 0;
  for (const Json& event : *list->as<Json::Array>()) {
    if (*event.find("ph")->as<std::string>() != "X") continue;
    ++events;
    CHECK(*event.find("dur")->as<double>() >= 0.0);
    CHECK(*event.find("ts")->as<double>() >= 0.0);
    CHECK(event.find("tid") != nullptr);
    CHECK(*event.find("args")->find("shape")->as<std::string>() == "[2, 3]");
  }
  CHECK(events == 2);
  CHECK_THROWS_AS(profile.write_trace(dir.path("no/such.json")), IoError);
}
