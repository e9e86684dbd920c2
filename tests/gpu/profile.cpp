// The profiler's times of a device (device_under_test.h), beside the device's own events.
#include "kiln/backend/dispatch/profile.h"

#include <chrono>
#include <string>

#include <doctest/doctest.h>

#include "kiln/core/json.h"
#include "kiln/kiln.h"
#include "tests/gpu/device_under_test.h"

using namespace kiln;

namespace {

Tensor on_gpu(const Shape& shape) { return rand(shape, {.device = test::gpu_device()}); }

const ProfileRow* find(const std::vector<ProfileRow>& rows, const std::string& op) {
  for (const ProfileRow& row : rows) {
    if (row.op == op) return &row;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("gpu: a profile has what ops take on the device") {
  if (!test::has_gpu()) return;
  const Tensor x = on_gpu({300, 300});
  x.matmul(x).exp();
  test::gpu().synchronize(0);

  const auto begin = std::chrono::steady_clock::now();
  Profile profile;
  const accelerator::Event before = test::gpu().record_event(0);
  Tensor y = x;
  for (int i = 0; i < 4; ++i) y = y.matmul(x);
  const accelerator::Event after = test::gpu().record_event(0);
  y = y.exp();
  const std::vector<ProfileRow> rows = profile.rows();  // it waits
  CHECK(after.is_passed());
  const double wall =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const double between = after.milliseconds_since(before) * 1e-3;

  const ProfileRow* products = find(rows, "float_matmul");
  REQUIRE(products != nullptr);
  CHECK(products->count == 4);
  // The device did nothing else between the two events.
  CHECK(products->device_seconds > 0.3 * between);
  CHECK(products->device_seconds < 1.02 * between + 1e-4);
  REQUIRE(find(rows, "float_exp") != nullptr);
  CHECK(find(rows, "float_exp")->device_seconds > 0.0);
  CHECK(find(rows, "float_exp")->device_seconds < products->device_seconds);
  double all = 0;
  for (const ProfileRow& row : rows) all += row.device_seconds;
  CHECK(all < wall);
  const std::string table = profile.table();
  CHECK(table.find("device ms") != std::string::npos);

  profile.stop();
  x.matmul(x);
  CHECK(find(profile.rows(), "float_matmul")->device_seconds == products->device_seconds);
}

TEST_CASE("gpu: copies are timed, in ops and outside") {
  if (!test::has_gpu()) return;
  const Tensor pinned = pin_memory(rand({200000}), test::gpu_device());
  Profile profile;
  const Tensor there = rand({200000}).to(test::gpu_device());
  CHECK(find(profile.rows(), "outside ops") == nullptr);
  const Tensor enqueued = to_non_blocking(pinned, test::gpu_device());
  const std::vector<ProfileRow> rows = profile.rows();
  REQUIRE(find(rows, "float_from_data") != nullptr);
  CHECK(find(rows, "float_from_data")->device_seconds > 0.0);
  REQUIRE(find(rows, "outside ops") != nullptr);
  CHECK(find(rows, "outside ops")->count == 0);
  CHECK(find(rows, "outside ops")->device_seconds > 0.0);
  CHECK(enqueued.to("cpu").equal(pinned));
  CHECK(find(profile.rows(), "float_into_data")->device_seconds > 0.0);
}

TEST_CASE("gpu: the trace has a line for each device") {
  if (!test::has_gpu()) return;
  const Tensor x = on_gpu({64, 64});
  test::gpu().synchronize(0);
  const auto begin = std::chrono::steady_clock::now();
  Profile profile;
  for (int i = 0; i < 3; ++i) x.matmul(x);
  profile.stop();
  const double wall_us =
      std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
  const Json json = decode_json(profile.trace());
  const Json* list = json.find("traceEvents");
  REQUIRE(list != nullptr);
  int64_t line = -1;
  for (const Json& event : *list->as<Json::Array>()) {
    if (*event.find("name")->as<std::string>() != "thread_name") continue;
    if (*event.find("args")->find("name")->as<std::string>() != concat(test::gpu().name, ":0")) {
      continue;
    }
    line = *event.find("tid")->as<int64_t>();
  }
  REQUIRE(line >= 0);
  int events = 0;
  double last_end = -1e3;
  for (const Json& event : *list->as<Json::Array>()) {
    if (*event.find("ph")->as<std::string>() != "X") continue;
    if (*event.find("tid")->as<int64_t>() != line) continue;
    ++events;
    CHECK(*event.find("name")->as<std::string>() == "float_matmul");
    // In their order, and within the profile by the host's clock, a millisecond more or less.
    CHECK(*event.find("ts")->as<double>() >= last_end - 1.0);
    last_end = *event.find("ts")->as<double>() + *event.find("dur")->as<double>();
    CHECK(*event.find("ts")->as<double>() > -1e3);
    CHECK(last_end < wall_us + 1e3);
  }
  CHECK(events == 3);
}

TEST_CASE("gpu: a long profile hands its times over as it goes") {
  if (!test::has_gpu()) return;
  const Tensor x = on_gpu({4});
  Profile profile;
  Tensor y = x;
  for (int i = 0; i < 5000; ++i) y = x + 1.0;
  profile.stop();
  int64_t launches = 0;
  const std::string trace = profile.trace();
  for (size_t at = 0; (at = trace.find("\"name\": \"float_add_scalar\"", at)) != std::string::npos;
       ++at) {
    ++launches;
  }
  // Each is there twice: on the host and on the device.
  CHECK(launches == 10000);
}
