#include "kiln/core/device.h"

#include <string>

#include <doctest/doctest.h>

#include "kiln/core/error.h"

using namespace kiln;

TEST_CASE("devices parse and print") {
  CHECK(Device() == Device("cpu"));
  CHECK(Device("cpu:0") == Device(kCpu));
  CHECK(Device("reference") == Device(kReference, 0));
  CHECK(Device("reference:1") == Device(kReference, 1));
  CHECK(Device("cpu") != Device("reference"));
  CHECK(to_string(Device("cpu:0")) == "cpu");
  CHECK(to_string(Device("reference:127")) == "reference:127");
  CHECK(to_string(Device(DeviceType{15}, 2)) == "device type 15:2");
}

TEST_CASE("malformed and unknown devices throw") {
  for (const char* text : {"", "cuda", "cpu:", "cpu:x", "cpu:-1", "cpu:1", "cpu:128", "cpu:1x",
                           "cpu:1:2", " cpu", "CPU", "cpu:99999999999999999999"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(Device{text}, DeviceError);
  }
  CHECK_THROWS_WITH_AS(Device("gpu"), doctest::Contains("'cpu', 'reference'"), DeviceError);
  CHECK_THROWS_AS(Device(static_cast<const char*>(nullptr)), DeviceError);
}

TEST_CASE("registered names become devices") {
  const DeviceType type = detail::register_device_type("core-test");
  CHECK(type > kReference);
  CHECK(Device("core-test:3") == Device(type, 3));
  CHECK(to_string(Device(type, 3)) == "core-test:3");
  CHECK_THROWS_AS(detail::register_device_type("core-test"), DeviceError);
  CHECK_THROWS_AS(detail::register_device_type("cpu"), DeviceError);
  CHECK_THROWS_AS(detail::register_device_type(""), DeviceError);
  CHECK_THROWS_AS(detail::register_device_type("a:b"), DeviceError);
}

TEST_CASE("an unknown device: the error names those of libraries that are not open yet, too") {
  std::string message;
  try {
    static_cast<void>(Device("gpu"));
  } catch (const DeviceError& error) {
    message = error.what();
  }
  for (const char* const name : {"got 'gpu'", "'cpu'", "'cuda'", "'opencl'"}) {
    CHECK(message.find(name) != std::string::npos);
  }
}
