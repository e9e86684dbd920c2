#include "kiln/train/run_log.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/io/crc32c.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "tests/support/temp_dir.h"

using namespace kiln;
using namespace kiln::train;
using test::read_bytes;
using test::TempDir;

namespace {

template <class T>
T value_at(const std::string& bytes, size_t at) {
  T out;
  std::memcpy(&out, bytes.data() + at, sizeof out);
  return out;
}

uint32_t unmasked(uint32_t masked) {
  const uint32_t turned = masked - 0xa282ead8u;
  return turned << 15 | turned >> 17;
}

// The messages of an event file, their checksums checked.
std::vector<std::string> records_of(const std::string& bytes) {
  std::vector<std::string> out;
  for (size_t at = 0; at < bytes.size();) {
    const auto length = value_at<uint64_t>(bytes, at);
    REQUIRE(at + 16 + length <= bytes.size());
    CHECK(unmasked(value_at<uint32_t>(bytes, at + 8)) == io::crc32c_of(bytes.substr(at, 8)));
    out.push_back(bytes.substr(at + 12, length));
    CHECK(unmasked(value_at<uint32_t>(bytes, at + 12 + length)) == io::crc32c_of(out.back()));
    at += 16 + length;
  }
  return out;
}

}  // namespace

// The examples of RFC 3720, appendix B.4, and the check value of the catalogues.
TEST_CASE("crc32c: known values") {
  CHECK(io::crc32c_of("123456789") == 0xe3069283u);
  CHECK(io::crc32c_of(std::string(32, '\0')) == 0x8a9136aau);
  CHECK(io::crc32c_of(std::string(32, '\xff')) == 0x62a8ab43u);
  CHECK(io::crc32c_of("") == 0u);
}

// The examples of protobuf.dev/programming-guides/encoding.
TEST_CASE("protobuf: known bytes") {
  CHECK(io::ProtobufWriter().integer(1, 150).text() == "\x08\x96\x01");
  CHECK(io::ProtobufWriter().bytes(2, "testing").text() == "\x12\x07testing");
  CHECK(io::ProtobufWriter().message(3, io::ProtobufWriter().integer(1, 150)).text() ==
        "\x1a\x03\x08\x96\x01");
  CHECK(io::ProtobufWriter().integer(1, -1).text() ==
        std::string("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
  CHECK(io::ProtobufWriter().single(2, 1.0f).text() == std::string("\x15\0\0\x80\x3f", 5));
  CHECK(io::ProtobufWriter().packed(6, {1.0}).text() ==
        std::string("\x32\x08\0\0\0\0\0\0\xf0\x3f", 10));
}

TEST_CASE("an event file: framed records, cut back and gone on with") {
  const TempDir dir;
  const std::string path = dir.path("events.out.tfevents.1.kiln");
  int64_t position = 0;
  {
    EventFile file(path);
    file.scalar("loss", 0.5, 3);
    position = file.position();
    file.scalar("loss", 0.25, 4);
    file.text("note", "hello", 4);
    CHECK_THROWS_AS(file.image("i", zeros({2, 3, 4}, {DType::u8}), 1), ShapeError);
    CHECK_THROWS_AS(file.image("i", zeros({3, 4}), 1), DTypeError);
  }
  const auto all = records_of(read_bytes(path));
  REQUIRE(all.size() == 4);
  CHECK(all[0].ends_with(std::string("\x1a\x0d") + "brain.Event:2"));
  // step 3; summary { value { tag "loss" simple_value 0.5 } }
  CHECK(all[1].substr(9) == std::string("\x10\x03\x2a\x0d\x0a\x0b\x0a\x04loss\x15\0\0\0\x3f", 17));
  {
    EventFile again(path, position);
    again.scalar("loss", 0.125, 4);
  }
  const auto cut = records_of(read_bytes(path));
  REQUIRE(cut.size() == 3);
  CHECK(cut[1] == all[1]);
}

TEST_CASE("a log of a run: lines, rows, and where it stands") {
  const TempDir dir;
  RunLogPosition at;
  {
    RunLog log(dir.path("run"));
    log.numbers("step", 0, 5, {{"train/loss", 0.5}, {"odd, \"name\"", std::nan("")}});
    at = log.position();
    log.numbers("step", 0, 6, {{"train/loss", std::numeric_limits<double>::infinity()}});
    log.note("warning", 0, 6, "a disk is full");
  }
  const std::string lines = read_bytes(dir.path("run/log.jsonl"));
  CHECK(lines.find("\"event\":\"step\",\"epoch\":0,\"step\":5,\"time\":") != std::string::npos);
  CHECK(lines.find("\"train/loss\":0.5,\"odd, \\\"name\\\"\":\"nan\"}\n") != std::string::npos);
  CHECK(lines.find("\"details\":\"a disk is full\"}\n") != std::string::npos);
  const std::string rows = read_bytes(dir.path("run/log.csv"));
  CHECK(rows.starts_with("event,epoch,step,time,name,value\nstep,0,5,"));
  CHECK(rows.find(",\"odd, \"\"name\"\"\",nan\n") != std::string::npos);
  CHECK(rows.find(",train/loss,inf\n") != std::string::npos);
  RunLog again(dir.path("run"), {}, at);
  CHECK(read_bytes(dir.path("run/log.jsonl")).size() == static_cast<size_t>(at.json));
  CHECK(read_bytes(dir.path("run/log.csv")).find("inf") == std::string::npos);
  CHECK(records_of(read_bytes(dir.path("run/" + at.event_file))).size() == 3);
  CHECK(dir.names().size() == 1);
  CHECK_THROWS_AS(RunLog(dir.path("run/log.csv")), IoError);
}
