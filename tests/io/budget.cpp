// Small files that ask for much memory: each costs at most 64 times its size and 16 MiB.
#include "kiln/core/budget.h"

#include <algorithm>
#include <ctime>
#include <memory>
#include <vector>

#include <doctest/doctest.h>

#include "kiln/core/config.h"
#include "kiln/data/idx.h"
#include "kiln/io/image.h"
#include "kiln/io/model_file.h"
#include "kiln/io/npy_file.h"
#include "kiln/io/recorder.h"
#include "kiln/io/torch_file.h"
#include "kiln/io/zip_writer.h"
#include "kiln/nn/nn.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "tests/support/gzip.h"
#include "tests/support/held_memory.h"
#include "tests/support/pickle_bytes.h"
#include "tests/support/temp_dir.h"
#include "tests/support/throws.h"

using namespace kiln;
using namespace kiln::io;
using namespace kiln::test::pickle;
using kiln::test::message_of;
using kiln::test::TempDir;

namespace {

constexpr size_t kMiB = size_t{1} << 20;

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// How many times as long as on a common processor things take here; an emulated one is slow.
double slowness() {
  static const double times = [] {
    const double begin = cpu_seconds();
    std::vector<std::unique_ptr<int>> items;
    for (int i = 0; i < 200000; ++i) items.push_back(std::make_unique<int>(i));
    items.clear();
    return std::max(1.0, (cpu_seconds() - begin) / 0.02);
  }();
  return times;
}

// Reads a file of these bytes. The message of its IoError, "" when it could be read; either way
// within the limits.
template <class F>
std::string read_bomb(const TempDir& dir, const std::string& name, const std::string& bytes,
                      F&& f) {
  CAPTURE(name);
  CAPTURE(bytes.size());
  const std::string path = test::write_bytes(dir.path(name), bytes);
  [[maybe_unused]] const double times = slowness();
  test::reset_peak_memory();
  [[maybe_unused]] const double begin =
      cpu_seconds();  // a build with debugging checks is not timed
  const std::string message = message_of<IoError>([&] { f(path); });
  CHECK(test::peak_memory() <= 64 * bytes.size() + 20 * kMiB);
#ifdef NDEBUG
  CHECK(cpu_seconds() - begin <= times * (0.5 + static_cast<double>(bytes.size()) / 1e5));
#endif
  return message;
}

void load(const std::string& path) { load_torch(path); }

// PyTorch's zip form with everything deflated.
std::string deflated_torch(const std::string& pickle, const std::string& data) {
  return test::zip_of({{"m/data.pkl", pickle, true}, {"m/data/0", data, true}});
}

struct Numbers {
  std::vector<double> list = {};
  KILN_CONFIG(Numbers, list)
};

}  // namespace

TEST_CASE("budget: what is charged, given back and refused") {
  Budget budget("read: 'f'", 10, 100);
  CHECK(budget.limit() == 1000 + 16 * kMiB);
  budget.charge(budget.limit(), "it");
  const std::string message = message_of<IoError>([&] { budget.charge(1, "one more"); });
  CHECK(message.find("read: 'f' is refused: one more would take more than 100 times") == 0);
  CHECK(message.find("max_ratio") != std::string::npos);
  CHECK(budget.used() == budget.limit());
  budget.release(10);
  budget.charge(10, "it");
  CHECK_THROWS_AS(budget.charge(UINT64_MAX, "all"), IoError);
  CHECK(Budget("f", UINT64_MAX, 64).limit() > (uint64_t{1} << 60));

  Budget other("f", 0);
  std::vector<int64_t> items;
  for (int i = 0; i < 1000; ++i) {
    other.grow(items, 1, "items");
    items.push_back(i);
  }
  CHECK(other.used() == items.capacity() * sizeof(int64_t));
}

TEST_CASE("bombs: pickles of one opcode") {
  const TempDir dir;
  const size_t n = 8 * kMiB;
  const std::string zero(1, '\0');
  const std::vector<std::pair<const char*, std::string>> bodies{
      {"memoize", "N" + std::string(n, '\x94')},
      {"marks", std::string(n, '(')},
      {"dup", "N" + std::string(n, '2')},
      {"none", "(" + std::string(n, 'N') + "l"},
      {"dicts", "(" + std::string(n, '}') + "l"},
      {"sets", "(" + std::string(n, '\x8f') + "l"},
      {"tuples", "(" + std::string(n, ')') + "l"},
      {"recalled", "}q" + zero + "(" + repeated("h" + zero, n / 2) + "l"},
      {"numbers", "(" + repeated("M\1\2", n / 3) + "l"},
      {"long integers",
       "(" + repeated("\x8b" + test::little_endian(1024, 4) + std::string(1024, '\x55'), n / 1029) +
           "l"},
      {"appended", "]" + repeated("Na", n / 2)},
  };
  for (const auto& [name, body] : bodies) {
    const std::string file = torch_zip(whole(body), "", true);
    CHECK(file.size() < n / 4);
    CAPTURE(name);
    CHECK(read_bomb(dir, name, file, load).find("more than 64 times") != std::string::npos);
  }
  std::string puts = "N";
  for (uint64_t i = 0; i < 2'000'000; ++i) puts += "r" + test::little_endian(i * 2001, 4);
  read_bomb(dir, "memo places", torch_zip(whole(puts), "", true), load);
}

TEST_CASE("bombs: uncompressed pickles may cost their 64 times and no more") {
  const TempDir dir;
  const size_t n = 2 * kMiB;
  for (const char op : {'N', '}', ']', ')', '\x8f', '2', '\x94'}) {
    const std::string body =
        op == '2' || op == '\x94' ? "N" + std::string(n, op) + "0" : "(" + std::string(n, op) + "l";
    read_bomb(dir, std::string("op ") + op, torch_zip(whole(body)), load);
  }
}

TEST_CASE("bombs: a compressed storage with many tensors is inflated once") {
  const TempDir dir;
  const int64_t bytes = 12 * static_cast<int64_t>(kMiB);
  std::string body = "](";
  const char* const types[] = {"FloatStorage", "IntStorage"};
  for (int i = 0; i < 1000; ++i) {
    body += tensor(storage(bytes / 4, "0", types[i % 2]), i, {1}, {1});
  }
  const std::string file = deflated_torch(whole(body + "e"), std::string(size_t(bytes), '\0'));
  CHECK(read_bomb(dir, "alternating", file, load) == "");
  const auto one_by_one = [](const std::string& path) {
    const auto reader = open_model_file(path, {.key = "."});
    CHECK(reader->entries().size() == 1000);
    for (const TensorEntry& entry : reader->entries()) reader->read(entry.name);
  };
  CHECK(read_bomb(dir, "one by one", file, one_by_one) == "");
  // Tensors that see all of it: each alone has memory of its own.
  std::string whole_views = "](";
  for (int i = 0; i < 100; ++i) {
    whole_views += tensor(storage(bytes / 4), 0, {bytes / 4}, {1});
  }
  const std::string views =
      deflated_torch(whole(whole_views + "e"), std::string(size_t(bytes), '\0'));
  CHECK(read_bomb(dir, "views", views, load) == "");
  const auto all_of_them = [](const std::string& path) {
    const auto reader = open_model_file(path, {.key = "."});
    for (const TensorEntry& entry : reader->entries()) reader->read(entry.name);
  };
  CHECK(read_bomb(dir, "copies of views", views, all_of_them).find("64 times") !=
        std::string::npos);
  // A bool beside a float: what is written through one would spoil the other.
  const std::string mixed = "](" + tensor(storage(4), 0, {4}, {1}) +
                            tensor(storage(16, "0", "BoolStorage"), 0, {16}, {1}) + "e";
  CHECK(read_bomb(dir, "bools", torch_zip(whole(mixed), std::string(16, '\0')), load)
            .find("share a storage") != std::string::npos);
}

TEST_CASE("bombs: long names above many values, and a text as many keys") {
  const TempDir dir;
  const std::string zero(1, '\0');
  const std::string one = tensor(storage(1), 0, {1}, {1});
  const std::string key = text(std::string(300'000, 'k'));
  const std::string body = "}" + key + "](" + one + "q" + zero + repeated("h" + zero, 3000) + "es";
  const std::string file = torch_zip(whole(body), std::string(4, '\0'));
  CHECK(read_bomb(dir, "names", file, load) == "");
  CHECK(read_bomb(dir, "joined names", file, [](const std::string& path) {
          load_model_file(path, {.key = "."});
        }).find("64 times") != std::string::npos);
  const std::string same =
      "}(" + key + "q" + zero + "N" + repeated("h" + zero + "N", 100'000) + "u";
  CHECK(read_bomb(dir, "keys", torch_zip(whole(same)), load).find("twice") != std::string::npos);
}

TEST_CASE("bombs: a storage of zeros, and the way to load it") {
  const TempDir dir;
  const auto n = static_cast<int64_t>(32 * kMiB);
  const std::string file = deflated_torch(whole(dict("w", tensor(storage(n / 4), 0, {n / 4}, {1}))),
                                          std::string(size_t(n), '\0'));
  const std::string message = read_bomb(dir, "zeros.pt", file, load);
  CAPTURE(message);
  CHECK(message.find("a tensor would take more than 64 times") != std::string::npos);
  CHECK(message.find("max_ratio") != std::string::npos);
  CHECK(load_torch(dir.path("zeros.pt"), 1100)["w"].get<Tensor>()->numel() == n / 4);
  CHECK(load_model_file(dir.path("zeros.pt"), {.key = "", .max_ratio = 1100}).tensors.size() == 1);
}

TEST_CASE("bombs: records, configurations, arrays, idx files, images") {
  const TempDir dir;
  const size_t n = 16 * kMiB;
  const std::string zeros = repeated("0,", n / 2) + "0";
  const std::string head =
      "{\"metadata\":{\"format\":\"kiln.record\",\"record_version\":1,"
      "\"kiln_version\":\"x\",\"settings\":\"x\",\"float\":\"float32\","
      "\"int\":\"int32\"},\"values\":{},\"tensors\":[{\"name\":\"w\",\"dtype\":"
      "\"float32\",\"shape\":[8388609],\"values\":[";
  CHECK(read_bomb(dir, "r.json.gz", test::gzipped(head + zeros + "]}]}"), [](const auto& path) {
          JsonGzFileRecorder<>().load_record(path);
        }).find("64 times") != std::string::npos);
  // One key, of which the parser has two copies that grow by doubling.
  const std::string key = "{\"metadata\":{\"" + std::string(2'097'400, 'v') + "\":1}}";
  CHECK(read_bomb(dir, "k.json.gz", test::gzipped(key), [](const auto& path) {
          JsonGzFileRecorder<>().load_record(path);
        }).find("64 times") != std::string::npos);
  for (const char item : {'\x90', '\xc0', '\x80', '\xa0'}) {
    const std::string packed = "\xdd" + std::string("\x01\0\0\0", 4) + std::string(n, item);
    CHECK(read_bomb(dir, "r.mpk.gz", test::gzipped(packed), [](const auto& path) {
            NamedMpkGzFileRecorder<>().load_record(path);
          }).find("64 times") != std::string::npos);
  }
  const std::string binary(300'000, '\x90');
  read_bomb(dir, "r.mpk", "\xdd" + std::string("\0\x04\x93\xe0", 4) + binary,
            [](const auto& path) { NamedMpkFileRecorder<>().load_record(path); });
  CHECK(read_bomb(dir, "c.json.gz", test::gzipped("{\"list\":[" + zeros + "]}"),
                  [](const auto& path) { Numbers::load(path); })
            .find("64 times") != std::string::npos);
  const std::string plain = "{\"list\":[" + zeros.substr(0, 2'000'001) + "]}";
  CHECK(read_bomb(dir, "c.json", plain, [](const auto& path) {
          CHECK(Numbers::load(path).list.size() == 1'000'001);
        }) == "");
  const std::string array = "\x93NUMPY\1" + std::string("\0\x76\0", 3) + [] {
    std::string text = "{'descr': '<f4', 'fortran_order': False, 'shape': (8388608,), }";
    text.resize(117, ' ');
    return text + "\n";
  }() + std::string(4 * 8388608, '\0');
  CHECK(read_bomb(dir, "a.npz", test::zip_of({{"a.npy", array, true}}), [](const auto& path) {
          load_npz(path);
        }).find("64 times") != std::string::npos);
  CHECK(load_npz(dir.path("a.npz"), 1100).at("a").numel() == 8388608);
  const std::string idx = std::string("\0\0\x08\x01\x02\0\0\0", 8) + std::string(32 * kMiB, '\0');
  CHECK(read_bomb(dir, "i.gz", test::gzipped(idx), [](const auto& path) {
          data::read_idx(path);
        }).find("64 times") != std::string::npos);
  const std::string png = encode_png_gray(TensorData(Shape{6000, 6000}, DType::u8));
  CHECK(read_bomb(dir, "white.png", png, [](const auto& path) {
          read_gray_image(path);
        }).find("64 times") != std::string::npos);
  CHECK(read_gray_image(dir.path("white.png"), 1100).numel() == 36'000'000);
}

TEST_CASE("budget: what Kiln compresses itself, Kiln reads without being asked for more") {
  const TempDir dir;
  nn::StateDict tensors{{"zeros", zeros({4, 3000, 1000})}, {"ones", ones({1000, 1000})}};
  for (int i = 0; i < 300; ++i) tensors.set(concat("small.", i), zeros({50'000}));
  save_npz(dir.path("z.npz"), tensors, true);
  const auto size = std::filesystem::file_size(dir.path("z.npz"));
  CHECK(size < 112'000'000 / 30);
  const nn::StateDict back = load_npz(dir.path("z.npz"));
  CHECK(back.size() == tensors.size());
  CHECK(back.at("zeros").equal(tensors.at("zeros")));

  nn::Linear layer(2000, 1000);
  layer.weight.replace(zeros({1000, 2000}));
  layer.bias.replace(zeros({1000}));
  layer.save_file(dir.path("l"), JsonGzFileRecorder<>());
  layer.save_file(dir.path("l"), NamedMpkGzFileRecorder<>());
  CHECK(std::filesystem::file_size(dir.path("l.json.gz")) < 4'000'000);
  nn::Linear other(2000, 1000);
  other.load_file(dir.path("l"), JsonGzFileRecorder<>());
  CHECK(other.weight->equal(*layer.weight));
  other.load_file(dir.path("l"), NamedMpkGzFileRecorder<>());
}
