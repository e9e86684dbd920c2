#include "kiln/io/recorder.h"

#include <cmath>

#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/io/gzip.h"
#include "kiln/io/safetensors.h"
#include "kiln/optim/optim.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "tests/nn/models.h"
#include "tests/support/gzip.h"
#include "tests/support/near.h"
#include "tests/support/temp_dir.h"
#include "tests/support/throws.h"

using namespace kiln;
using namespace kiln::io;
using kiln::nn::Linear;
using kiln::nn::Record;
using kiln::test::message_of;
using kiln::test::near;
using kiln::test::Net;
using kiln::test::read_bytes;
using kiln::test::TempDir;
using kiln::test::write_bytes;

namespace {

template <class Settings>
std::vector<std::unique_ptr<nn::Recorder>> all_recorders() {
  std::vector<std::unique_ptr<nn::Recorder>> out;
  out.push_back(std::make_unique<SafetensorsRecorder<Settings>>());
  out.push_back(std::make_unique<NamedMpkFileRecorder<Settings>>());
  out.push_back(std::make_unique<NamedMpkGzFileRecorder<Settings>>());
  out.push_back(std::make_unique<CborFileRecorder<Settings>>());
  out.push_back(std::make_unique<PrettyJsonFileRecorder<Settings>>());
  out.push_back(std::make_unique<JsonFileRecorder<Settings>>());
  out.push_back(std::make_unique<JsonGzFileRecorder<Settings>>());
  return out;
}

bool same_values(const Record& a, const Record& b) {
  if (a.size() != b.size() || a.values() != b.values()) return false;
  for (const auto& entry : a.entries()) {
    const auto* other = b.find(entry.path);
    if (other == nullptr || other->id != entry.id || !other->value.equal(entry.value)) return false;
  }
  return true;
}

// A record with every kind of content that a file must keep apart.
Record mixed() {
  Record record;
  record.add("w", nn::ParamId(0x0123456789abcdefULL),
             tensor({{0.1, -1e-30, 3e30}, {INFINITY, -0.0, 1.0}}, {f32}));
  record.add("scalar", std::nullopt, full({}, -5, {i32}));
  record.add("empty", nn::ParamId(1), zeros({0, 3}));
  record.add("mask", std::nullopt, tensor({true, false, true}));
  record.add("bytes", std::nullopt, tensor({0, 255}, {u8}));
  record.set_value("epoch", -7);
  record.set_value("lr", 0.1);
  record.set_value("whole", 2.0);
  record.set_value("flag", false);
  record.set_value("text", "päge \"1\"\n");
  return record;
}

}  // namespace

TEST_CASE("every recorder gives a record back: values, dtypes, shapes, ids") {
  const TempDir dir;
  const Record record = mixed();
  for (const auto& recorder : all_recorders<nn::FullPrecisionSettings>()) {
    INFO(recorder->extension());
    recorder->record(record, dir.path("mixed"));
    const std::string file = dir.path("mixed." + recorder->extension());
    const Record back = recorder->load_record(file);
    CHECK(same_values(record, back));
    for (const auto& entry : record.entries()) {
      CHECK(back.find(entry.path)->value.dtype() == entry.value.dtype());
      CHECK(back.find(entry.path)->value.shape() == entry.value.shape());
    }
    CHECK(std::holds_alternative<double>(back.values().at("whole")));
    const auto item = recorder->load(file);
    CHECK(item.settings.name == "FullPrecisionSettings");
  }
}

TEST_CASE("save_file and load_file: a model in each format, into a lazy model") {
  const TempDir dir;
  Net net;
  net.steps->fill_(12);
  const Tensor x = test::pattern({2, 1, 3, 3}, 5, 13, 4.0, f32);
  const Tensor y = net(x);
  for (const auto& recorder : all_recorders<nn::FullPrecisionSettings>()) {
    INFO(recorder->extension());
    net.save_file(dir.path("net"), *recorder);
    Net lazy;
    lazy.load_file(dir.path("net"), *recorder, Device(kCpu));
    CHECK(lazy(x).equal(y));
    CHECK(lazy.conv.weight.id() == net.conv.weight.id());
    CHECK(lazy.steps->item<int64_t>() == 12);
  }
  CHECK(dir.names().size() == 6);  // two formats share .json; no temporary is left
}

TEST_CASE("half precision halves the file, double keeps float64 exactly") {
  const TempDir dir;
  Linear model(64, 64);
  model.save_file(dir.path("full"), NamedMpkFileRecorder<>());
  model.save_file(dir.path("half"), NamedMpkFileRecorder<nn::HalfPrecisionSettings>());
  const size_t full = read_bytes(dir.path("full.mpk")).size();
  const size_t half = read_bytes(dir.path("half.mpk")).size();
  CHECK(full > 4 * 64 * 65);
  CHECK(half < full * 55 / 100);
  Linear loaded(64, 64);
  loaded.load_file(dir.path("half"), NamedMpkFileRecorder<>());  // any settings are read
  CHECK(loaded.weight->dtype() == f32);
  CHECK(loaded.weight->allclose(*model.weight, 1e-3, 1e-4));

  model.to(f64);
  model.weight.replace((*model.weight / 3.0).detach());
  for (const auto& recorder : all_recorders<nn::DoublePrecisionSettings>()) {
    INFO(recorder->extension());
    model.save_file(dir.path("double"), *recorder);
    Linear exact(64, 64);
    exact.to(f64);
    exact.load_file(dir.path("double"), *recorder);
    CHECK(exact.weight->equal(*model.weight));
  }
}

TEST_CASE("bytes: a record in memory") {
  const Record record = mixed();
  const NamedMpkBytesRecorder<> recorder;
  std::vector<std::byte> bytes = recorder.record(record);
  CHECK(same_values(recorder.load(bytes), record));
  for (const size_t length : {size_t{0}, size_t{1}, bytes.size() / 2, bytes.size() - 1}) {
    CHECK_THROWS_AS(recorder.load(std::span(bytes).first(length)), IoError);
  }
  bytes.push_back(std::byte{0});
  CHECK_THROWS_AS(recorder.load(bytes), IoError);
}

TEST_CASE("optimizers have records in files") {
  const TempDir dir;
  Linear model(2, 2);
  optim::Adam adam(model.parameters(), {.lr = 0.125});
  model(ones({1, 2})).sum().backward_accumulate();
  adam.step();
  adam.save_file(dir.path("adam"), PrettyJsonFileRecorder<>());
  optim::Adam other(model.parameters());
  other.load_file(dir.path("adam"), PrettyJsonFileRecorder<>());
  CHECK(other.param_groups()[0].lr == 0.125);
  CHECK(other.state_dict().scalars == adam.state_dict().scalars);
}

TEST_CASE("safetensors: files of others load, without ids") {
  const TempDir dir;
  Linear model(2, 1);
  const auto id = model.weight.id();
  const TensorData w(std::vector<float>{1, 2}, {1, 2});
  const TensorData b(std::vector<float>{3}, {1});
  save_safetensors(dir.path("other.safetensors"), {{"weight", w}, {"bias", b}});
  model.load_file(dir.path("other"), SafetensorsRecorder<>());
  CHECK(near(*model.weight, {1, 2}));
  CHECK(model.weight.id() == id);
}

TEST_CASE("json: what a person reads") {
  const TempDir dir;
  Record record;
  record.add("w", nn::ParamId(5), tensor({0.1, NAN, -INFINITY}, {f32}));
  PrettyJsonFileRecorder<>().record(record, dir.path("r"));
  const std::string text = read_bytes(dir.path("r.json"));
  CHECK(text.find("\"values\": [0.1, \"nan\", \"-inf\"]") != std::string::npos);
  CHECK(text.find("\"settings\": \"FullPrecisionSettings\"") != std::string::npos);
  CHECK(text.find("\"float\": \"float32\"") != std::string::npos);
  const Record back = PrettyJsonFileRecorder<>().load_record(dir.path("r"));
  CHECK(std::isnan(back.entries()[0].value[1].item()));
}

TEST_CASE("hostile files are IoErrors that name the file") {
  const TempDir dir;
  Linear model(2, 2);
  const Tensor before = model.weight->detach().clone();
  const auto refused = [&](const nn::Recorder& recorder, const std::string& content,
                           const std::string& words) {
    const std::string path = dir.path("bad." + recorder.extension());
    write_bytes(path, content);
    const std::string message = message_of<IoError>([&] { model.load_file(path, recorder); });
    INFO(message);
    CHECK(message.find("bad." + recorder.extension()) != std::string::npos);
    CHECK(message.find(words) != std::string::npos);
    CHECK(model.weight->equal(before));
  };
  const JsonFileRecorder<> json;
  const NamedMpkFileRecorder<> mpk;
  const CborFileRecorder<> cbor;
  refused(json, "", "malformed");
  refused(json, "[]", "metadata");
  refused(json, "{\"metadata\": 3}", "format");
  refused(json, std::string(100000, '['), "64 levels");
  refused(mpk, std::string(1000000, '\x91'), "64 levels");  // arrays of one array
  refused(cbor, std::string(1000000, '\x81'), "64 levels");
  refused(mpk, std::string("\xdd\xff\xff\xff\xff", 5), "malformed");  // four billion elements
  refused(mpk, std::string("\xc6\xff\xff\xff\xff", 5), "malformed");  // four billion bytes
  refused(mpk, std::string("\xdf\xff\xff\xff\xff", 5), "malformed");
  refused(cbor, std::string("\x9b\x7f\xff\xff\xff\xff\xff\xff\xff", 9), "malformed");
  refused(NamedMpkGzFileRecorder<>(), "\x1f\x8b", "truncated");
  refused(NamedMpkGzFileRecorder<>(), test::gzipped(std::string(30 << 20, '\0')), "64 times");
  CHECK_THROWS_AS(model.load_file(dir.path("missing"), mpk), IoError);

  json.record(model.into_record(), dir.path("good"));
  const std::string good = read_bytes(dir.path("good.json"));
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
  };
  refused(json, changed("kiln.record\"", "burn\""), "no record of Kiln");
  refused(json, changed("\"record_version\":1", "\"record_version\":2"), "record version 2");
  refused(json, changed("\"float\":\"float32\"", "\"float\":\"float99\""), "dtype");
  refused(json, changed("\"float\":\"float32\"", "\"float\":\"float16\""), "metadata says");
  refused(json, changed("\"float\":\"float32\"", "\"float\":\"int32\""), "float type");
  refused(json, changed("[2,2]", "[2,3]"), "another size");
  refused(json, changed("[2,2]", "[-2,-2]"), "bad dim");
  refused(json, changed("[2,2]", "[4611686018427387904,4,2]"), "overflows");
  refused(json, changed("[2,2]", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2,2]"), "too many dims");
  refused(json, changed("\"name\":\"weight\"", "\"name\":\"bias\""), "twice");
  refused(json, changed("\"name\":\"weight\"", "\"name\":7"), "the integer 7");
  refused(json, changed("\"id\":\"", "\"id\":\"!"), "bad id");
  refused(json, changed("\"values\":[", "\"values\":[null,"), "another size");
  refused(json, changed("\"values\":{}", "\"values\":{\"a\":[1]}"), "a list of 1");
  refused(json, good + "x", "malformed");
  refused(json, changed("\"values\":{}", "\"values\":{},\"values\":{}"), "twice");
  for (size_t length = 0; length < good.size(); length += 7) {
    write_bytes(dir.path("cut.json"), good.substr(0, length));
    CHECK_THROWS_AS(model.load_file(dir.path("cut"), json), IoError);
  }
}

TEST_CASE("files with changed bytes load as something else, or are IoErrors: nothing worse") {
  const TempDir dir;
  const Record record = mixed();
  for (const auto& recorder : all_recorders<nn::FullPrecisionSettings>()) {
    INFO(recorder->extension());
    const std::string path = dir.path("f." + recorder->extension());
    recorder->record(record, path);
    const std::string good = read_bytes(path);
    uint64_t random = 88172645463325252ULL;  // Marsaglia's xorshift
    const auto next = [&random] {
      random ^= random << 13;
      random ^= random >> 7;
      return random ^= random << 17;
    };
    for (int round = 0; round < 300; ++round) {
      std::string bad = good;
      for (uint64_t changes = 1 + next() % 3; changes > 0; --changes) {
        bad[next() % bad.size()] = static_cast<char>(next());
      }
      write_bytes(path, bad);
      try {
        recorder->load_record(path);
      } catch (const IoError&) {
      }
    }
  }
}

TEST_CASE("a failed save leaves the old file") {
  const TempDir dir;
  Linear model(1, 1);
  model.weight.replace(full({1, 1}, 1e6));
  write_bytes(dir.path("m.mpk"), "old");
  CHECK_THROWS_AS(model.save_file(dir.path("m"), NamedMpkFileRecorder<nn::HalfPrecisionSettings>()),
                  ValueError);
  CHECK(read_bytes(dir.path("m.mpk")) == "old");
  CHECK_THROWS_AS(model.save_file(dir.path("no/such/m"), NamedMpkFileRecorder<>()), IoError);
}
