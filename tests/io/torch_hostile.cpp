// PyTorch files that ask to run code, lie, or are built to exhaust memory.
#include <doctest/doctest.h>

#include "kiln/io/model_file.h"
#include "kiln/io/torch_file.h"
#include "tests/support/fixtures.h"
#include "tests/support/hostile.h"
#include "tests/support/pickle_bytes.h"

using namespace kiln;
using namespace kiln::io;
using namespace kiln::test::pickle;
using kiln::test::check_refused;
using kiln::test::fuzz;
using kiln::test::TempDir;
using kiln::test::zip_of;

namespace {

const std::string kSixteen(16, '\0');  // four floats

void load_hostile(const std::string& path) { load_torch(path); }

// The pickle in both forms of file. The older one is refused while the pickle is read, or later for
// its storages.
struct Case {
  const char* what;
  std::string body;
  const char* message;
  std::string data = kSixteen;
};

void check_cases(const std::vector<Case>& cases) {
  TempDir dir;
  for (const Case& c : cases) {
    check_refused(dir, c.what, torch_zip(whole(c.body), c.data), c.message, load_hostile);
    check_refused(dir, c.what, torch_zip(whole(c.body), c.data, true), c.message, load_hostile);
    check_refused(dir, c.what, torch_legacy(whole(c.body), whole("]"), ""), "", load_hostile);
  }
}

// function(argument) for a name of a module.
std::string call(const std::string& module, const std::string& name, const std::string& argument) {
  return global(module, name) + "(" + text(argument) + "tR";
}

std::string longs(const std::string& bytes) {
  return "\x8b" + test::little_endian(bytes.size(), 4) + bytes;
}

}  // namespace

TEST_CASE("torch: the pickles of these tests are sound where they do not lie") {
  TempDir dir;
  const std::string values("\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40\0\0\x80\x40", 16);
  const std::string good = whole(dict("w", tensor(storage(4), 0, {2, 2}, {2, 1})));
  const PickleValue value = load_torch(test::write_bytes(dir.path("z"), torch_zip(good, values)));
  CHECK(value["w"].get<Tensor>()->to_vector<double>() == std::vector<double>{1, 2, 3, 4});
  const std::string legacy =
      torch_legacy(good, whole("]" + text("0") + "a"), test::little_endian(4, 8) + values);
  const PickleValue old = load_torch(test::write_bytes(dir.path("l"), legacy));
  CHECK(old["w"].get<Tensor>()->to_vector<double>() == std::vector<double>{1, 2, 3, 4});
}

TEST_CASE("torch: nothing is run, whatever opcode asks for it") {
  check_cases({
      {"os.system", call("os", "system", "touch /tmp/owned"), "'os.system'"},
      {"posix.system", call("posix", "system", "id"), "'posix.system'"},
      {"nt.system", call("nt", "system", "id"), "'nt.system'"},
      {"subprocess", call("subprocess", "Popen", "id"), "'subprocess.Popen'"},
      {"eval", call("builtins", "eval", "1"), "'builtins.eval'"},
      {"eval of Python 2", call("__builtin__", "eval", "1"), "'__builtin__.eval'"},
      {"exec", call("builtins", "exec", "1"), "'builtins.exec'"},
      {"getattr", call("builtins", "getattr", "x"), "'builtins.getattr'"},
      {"__import__", call("builtins", "__import__", "os"), "'builtins.__import__'"},
      {"open", call("io", "open", "/etc/passwd"), "'io.open'"},
      {"runpy", call("runpy", "_run_code", "x"), "'runpy._run_code'"},
      {"webbrowser", call("webbrowser", "open", "x"), "'webbrowser.open'"},
      {"torch.load itself", call("torch", "load", "x"), "'torch.load'"},
      {"torch.hub", call("torch.hub", "load", "x"), "'torch.hub.load'"},
      {"a name with dots", call("torch", "serialization.load", "x"), "'torch.serialization.load'"},
      {"a dunder of a listed class", global("collections", "OrderedDict.__init__"),
       "'collections.OrderedDict.__init__'"},
      {"operator.attrgetter", call("operator", "attrgetter", "x"), "'operator.attrgetter'"},
      {"functools.partial", call("functools", "partial", "x"), "'functools.partial'"},
      {"the name alone, never called", global("os", "system"), "'os.system'"},
      {"STACK_GLOBAL", text("os") + text("system") + "\x93", "'os.system'"},
      {"STACK_GLOBAL of no text", number(1) + text("system") + "\x93", "is no text"},
      {"INST", "(ios\nsystem\n", "INST"},
      {"INST of a listed class", "(icollections\nOrderedDict\n", "INST"},
      {"OBJ", "(" + global("collections", "OrderedDict") + "o", "OBJ"},
      {"NEWOBJ of a text", text("os") + ")\x81", "REDUCE"},
      {"NEWOBJ_EX", global("collections", "OrderedDict") + ")}\x92", "NEWOBJ_EX"},
      {"REDUCE of a tensor", tensor(storage(4), 0, {4}, {1}) + ")R", "REDUCE"},
      {"REDUCE of a dict", "})R", "REDUCE"},
      {"REDUCE with no tuple", global("torch", "Size") + "]R", "no tuple"},
      {"BUILD on a list", "]}b", "BUILD"},
      {"BUILD with a tuple", global("collections", "OrderedDict") + ")R" + tuple({1, 2}) + "b",
       "BUILD"},
      {"EXT1", "\x82\x01", "EXT"},
      {"EXT4", "\x84\x01\x01\x01\x01", "EXT"},
      {"NEXT_BUFFER", "\x97", "NEXT_BUFFER"},
      {"a persistent id that is text", text("os.system") + "Q", "not described as PyTorch"},
      {"a module with its source", "(" + text("module") + global("torch", "Tensor") + "tQ",
       "whole module"},
      {"a class as a storage",
       "(" + text("storage") + global("torch", "Tensor") + text("0") + text("cpu") + number(4) +
           "tQ",
       "not described as PyTorch"},
      {"a rebuild that Kiln does not know",
       global("torch._utils", "_rebuild_wrapper_subclass") + ")R",
       "'torch._utils._rebuild_wrapper_subclass'"},
      {"a typed rebuild around a call",
       global("torch._tensor", "_rebuild_from_type_v2") + "(" + global("torch", "Size") +
           global("torch", "Tensor") + "(tNtR",
       "not described as PyTorch"},
  });
}

TEST_CASE("torch: malformed pickles") {
  check_cases({
      {"an unknown opcode", "\xfe", "unknown opcode"},
      {"protocol 0", "I1\n", "protocol 0"},
      {"protocol 6", "\x80\x06N", "protocol is unknown"},
      {"a frame beyond the end", "\x95" + test::little_endian(UINT64_MAX, 8) + "N", "frame"},
      {"POP of nothing", "0N", "empty stack"},
      {"POP over a mark", "N(0", "empty stack"},
      {"a tuple without a mark", "Nt", "no mark"},
      {"TUPLE3 of two", "NN\x87", "empty stack"},
      {"two objects", "NN", "leaves objects behind"},
      {"a mark left", "(N", ""},
      {"nothing", "", "empty stack"},
      {"a memo that was never stored", "h\x05", "never stored"},
      {"a memo of 4 billion", "j\xff\xff\xff\xff", "never stored"},
      {"APPEND to a dict", "}Na", "no list"},
      {"SETITEM of a list", "]NNs", "no dict"},
      {"SETITEMS with a key alone", "}(Nu", "no dict"},
      {"a text longer than the file", "X\xff\xff\xff\x7f", "longer than what is left"},
      {"a text of 2^64 bytes", "\x8d" + std::string(8, '\xff'), "longer than what is left"},
      {"bytes of 2^63", "\x8e" + test::little_endian(uint64_t{1} << 63, 8),
       "longer than what is left"},
      {"a text that is no UTF-8", "X\2" + std::string("\0\0\0\xff\xfe", 5), "not UTF-8"},
      {"an integer of 4 GiB", "\x8b\xff\xff\xff\xff", "integer is too long"},
      {"an integer of 2000 bytes", longs(std::string(2000, 'x')), "integer is too long"},
      {"a name without end", "c" + std::string(1000, 'a'), "name is too long"},
      {"a key twice", "}" + text("a") + "Ns" + text("a") + "Ns", "key twice"},
      {"a number as key twice", "}" + number(7) + "Ns" + number(7) + "Ns", "key twice"},
      {"OrderedDict of no pairs", global("collections", "OrderedDict") + "(](" + number(1) + "etR",
       "no pairs"},
      {"a set of a number", global("builtins", "set") + "(" + number(1) + "tR", "no list"},
      {"Size of text", call("torch", "Size", "abc"), "what it does not take"},
      {"many arguments", global("torch", "Size") + "(" + repeated("N", 100) + "tR",
       "too many arguments"},
  });
}

TEST_CASE("torch: loops and depth") {
  check_cases({
      {"nested lists", repeated("]", 5000) + repeated("a", 4999), "nested too deeply"},
      {"nested tuples", "N" + repeated("\x85", 20'000), "nested too deeply"},
      {"nested dicts", repeated("}" + text("a"), 3000) + "N" + repeated("s", 3000),
       "nested too deeply"},
  });
  TempDir dir;
  const std::string zero(1, '\0');
  check_refused(dir, "a list in itself", torch_zip(whole("]q" + zero + "h" + zero + "a")),
                "contain themselves", load_hostile);
  check_refused(dir, "a dict as its own attributes",
                torch_zip(whole("}q" + zero + text("a") + "h" + zero + "s")), "contain themselves",
                load_hostile);
}

TEST_CASE("torch: bombs") {
  TempDir dir;
  // Each list holds the one before ten times: 10^30 values from 900 bytes.
  std::string laughs = "]";
  for (int i = 0; i < 30; ++i) {
    const std::string place(1, static_cast<char>(i));
    laughs += "q" + place + "0](" + repeated("h" + place, 10) + "e";
  }
  check_refused(dir, "lists of lists", torch_zip(whole(laughs)), "more than 64 times",
                load_hostile);
  // One long text, ten thousand times.
  const std::string long_text = text(std::string(100'000, 'x')) + "q" + std::string(1, '\0');
  check_refused(
      dir, "a text repeated",
      torch_zip(whole("](" + long_text + repeated("h" + std::string(1, '\0'), 10'000) + "e")),
      "more than 64 times", load_hostile);
  // A deflated pickle of nothing but new lists.
  check_refused(dir, "objects from nothing",
                torch_zip(whole("](" + repeated("]", 5'000'000) + "e"), "", true),
                "more than 64 times", load_hostile);
  check_refused(dir, "a pickle of 100 MB", torch_zip(std::string(100'000'000, 'N'), "", true),
                "too large", load_hostile);
  // A list that is copied into many sets.
  check_refused(
      dir, "copies of a list",
      torch_zip(whole(
          "](" + repeated("N", 50'000) + "eq" + std::string(1, '\0') +
          repeated("0" + global("builtins", "set") + "(h" + std::string(1, '\0') + "tR", 200))),
      "more than 64 times", load_hostile);
  // Memo places far apart take no memory for those between.
  std::string memo = "N";
  for (uint64_t i = 1; i < 100; ++i) memo += "r" + test::little_endian(i * 40'000'000, 4);
  load_hostile(test::write_bytes(dir.path("memo"), torch_zip(whole(memo))));
}

TEST_CASE("torch: tensors that do not lie in their storage") {
  constexpr int64_t kHuge = INT64_MAX;
  const auto t = [](int64_t offset, std::vector<int64_t> size, std::vector<int64_t> stride) {
    return tensor(storage(4), offset, size, stride);
  };
  check_cases({
      {"too large", t(0, {5}, {1}), "reaches outside"},
      {"offset", t(1, {4}, {1}), "reaches outside"},
      {"offset at the end", t(4, {1}, {1}), "reaches outside"},
      {"empty, offset beyond the end", t(5, {0}, {1}), "reaches outside"},
      {"stride", t(0, {2}, {4}), "reaches outside"},
      {"negative offset", t(-1, {1}, {1}), "reaches outside"},
      {"negative size", t(0, {-1}, {1}), "cannot be"},
      {"negative stride", t(3, {4}, {-1}), "cannot be"},
      {"two sizes, one stride", t(0, {2, 2}, {1}), "wrong number"},
      {"13 dims", t(0, std::vector<int64_t>(13, 1), std::vector<int64_t>(13, 1)), "wrong number"},
      {"100 dims", t(0, std::vector<int64_t>(100, 1), std::vector<int64_t>(100, 1)),
       "wrong number"},
      {"size overflows", t(0, {kHuge, kHuge}, {0, 0}), "overflows"},
      {"bytes overflow", t(0, {kHuge}, {0}), "overflows"},
      {"empty, but the rest overflows", t(0, {0, kHuge, kHuge}, {1, 1, 1}), "overflows"},
      {"stride overflows", t(0, {3}, {kHuge}), "overflows"},
      {"strides add up to an overflow", t(0, {2, 2}, {kHuge, kHuge}), "overflows"},
      {"offset overflows", t(kHuge, {2}, {1}), "overflows"},
      {"a repeated element as a petabyte", t(0, {int64_t{1} << 48}, {0}), "repeats its elements"},
      {"repeated elements that add up", "](" + repeated(t(0, {int64_t{1} << 22}, {0}), 6) + "e",
       "repeats its elements"},
      {"no numbers", global("torch._utils", "_rebuild_tensor_v2") + "(" + storage(4) + "NNNtR",
       "not described as PyTorch"},
      {"no arguments", global("torch._utils", "_rebuild_tensor_v2") + ")R",
       "not described as PyTorch"},
      {"a parameter of nothing", global("torch._utils", "_rebuild_parameter") + "(NtR",
       "no tensor"},
  });
}

TEST_CASE("torch: storages that lie") {
  TempDir dir;
  const auto refused = [&](const char* what, const std::string& pickle, const std::string& data,
                           const char* message) {
    check_refused(dir, what, torch_zip(whole(pickle), data), message, load_hostile);
  };
  const std::string four = tensor(storage(4), 0, {4}, {1});
  refused("too short", four, std::string(15, '\0'), "another size than its tensors");
  refused("too long", four, std::string(17, '\0'), "another size than its tensors");
  refused("empty", four, "", "another size than its tensors");
  refused("a terabyte", tensor(storage(int64_t{1} << 38), 0, {4}, {1}), kSixteen,
          "another size than its tensors");
  refused("missing", tensor(storage(4, "1"), 0, {4}, {1}), kSixteen, "is missing");
  refused("elsewhere", tensor(storage(4, "../data.pkl"), 0, {4}, {1}), kSixteen, "is missing");
  refused("negative", storage(-1), kSixteen, "impossible size");
  refused("overflowing", storage(INT64_MAX), kSixteen, "impossible size");
  refused("two sizes", "](" + four + tensor(storage(2), 0, {2}, {1}) + "e", kSixteen, "two sizes");
  refused("a bool of 2", dict("w", tensor(storage(4, "0", "BoolStorage"), 0, {4}, {1})),
          std::string("\0\1\2\1", 4), "neither 0 nor 1");
  const auto zip = [&](const std::vector<test::ZipPart>& parts) { return zip_of(parts); };
  const std::string pickle = whole(four);
  check_refused(dir, "two pickles", zip({{"a/data.pkl", pickle}, {"b/data.pkl", pickle}}),
                "two pickles", load_hostile);
  check_refused(dir, "no pickle", zip({{"a/x.pkl", pickle}}), "no pickle", load_hostile);
  check_refused(dir, "TorchScript", zip({{"a/data.pkl", pickle}, {"a/constants.pkl", ""}}),
                "TorchScript", load_hostile);
  check_refused(dir, "byte order",
                zip({{"m/data.pkl", pickle}, {"m/byteorder", "middle"}, {"m/data/0", kSixteen}}),
                "byte order", load_hostile);
  check_refused(dir, "something after the pickle", torch_zip(pickle + "N", kSixteen),
                "something follows", load_hostile);
  check_refused(dir, "a damaged storage",
                zip({{"m/data.pkl", pickle}, {.name = "m/data/0", .content = kSixteen, .crc = 77}}),
                "is damaged", load_hostile);
  check_refused(
      dir, "a storage as a bomb",
      zip({{"m/data.pkl", whole(tensor(storage(500'000'000), 0, {4}, {1}))},
           {.name = "m/data/0", .content = kSixteen, .deflate = true, .size = 2'000'000'000}}),
      "cannot have", load_hostile);
}

TEST_CASE("torch: the older form, lying") {
  TempDir dir;
  const std::string pickle = whole(tensor(storage(4), 0, {4}, {1}));
  const std::string keys = whole("]" + text("0") + "a");
  const std::string data = test::little_endian(4, 8) + kSixteen;
  const auto refused = [&](const char* what, const std::string& bytes, const char* message) {
    check_refused(dir, what, bytes, message, load_hostile);
  };
  load_hostile(test::write_bytes(dir.path("good"), torch_legacy(pickle, keys, data)));
  refused("no magic number", whole("N"), "not of PyTorch");
  refused("another magic number",
          whole("\x8a\x09"
                "123456789"),
          "not of PyTorch");
  refused("fewer keys", torch_legacy(pickle, whole("]"), data), "list of storages");
  refused("an unknown key", torch_legacy(pickle, whole("]" + text("1") + "a"), data),
          "unknown, or there twice");
  refused("keys that are no list", torch_legacy(pickle, whole("N"), data), "list of storages");
  refused("more elements", torch_legacy(pickle, keys, test::little_endian(5, 8) + kSixteen),
          "another size");
  refused("negative elements",
          torch_legacy(pickle, keys, test::little_endian(UINT64_MAX, 8) + kSixteen),
          "another size");
  refused("cut in the storage", torch_legacy(pickle, keys, data.substr(0, 23)), "truncated");
  refused("no storage", torch_legacy(pickle, keys, ""), "truncated");
  refused("more behind", torch_legacy(pickle, keys, data + "x"), "something follows");
  // A view of a storage that reaches outside it.
  const auto view = [&](int64_t offset, int64_t elements) {
    const std::string id = "(" + text("storage") + global("torch", "FloatStorage") + text("0") +
                           text("cpu") + number(4) + "(" + text("v") + number(offset) +
                           number(elements) + "ttQ";
    return torch_legacy(whole(tensor(id, 0, {1}, {1})), keys, data);
  };
  load_hostile(test::write_bytes(dir.path("view"), view(2, 2)));
  refused("view too long", view(2, 3), "lies outside");
  refused("view of negative offset", view(-1, 2), "lies outside");
  refused("view that overflows", view(2, INT64_MAX), "lies outside");
}

TEST_CASE("torch: a file cut anywhere is refused") {
  TempDir dir;
  for (const char* name : {"torch/views.pt", "torch/views_legacy.pt"}) {
    const std::string good = test::read_bytes(test::fixture(name));
    for (size_t n = 0; n < good.size(); n += n < 1000 ? 1 : 3) {
      CAPTURE(n);
      const std::string path = test::rewrite(dir.path("f"), good.substr(0, n));
      CHECK_THROWS_AS(load_torch(path), IoError);
      CHECK_THROWS_AS(open_model_file(path), IoError);
    }
  }
}

TEST_CASE("torch: mutations give a result or an IoError, nothing else") {
  TempDir dir;
  const auto open = [](const std::string& path) {
    const PickleValue value = load_torch(path);
    CHECK(to_text(value).size() < 1000);
    open_model_file(path, {.key = "."})->read_all();
  };
  // The whole file, where most mutations meet the checksums; then the pickle alone.
  for (const char* name : {"torch/checkpoint.pt", "torch/checkpoint_legacy.pt", "torch/views.pt",
                           "torch/views_legacy.pt", "torch/deflated.pt"}) {
    CAPTURE(name);
    const auto count = fuzz(dir, test::read_bytes(test::fixture(name)), 800, 7, open);
    CHECK(count.errors > 300);
  }
  std::mt19937 random(11);
  const std::string good =
      "](" + tensor(storage(4), 0, {2, 2}, {2, 1}) + tensor(storage(4), 1, {3}, {1}) +
      dict("w", tensor(storage(4), 0, {2, 3}, {1, 0})) +
      global("torch._utils", "_rebuild_parameter") + "(" + tensor(storage(4), 3, {}, {}) + "\x88" +
      global("collections", "OrderedDict") + ")RtR" + global("torch", "Size") + "(" +
      tuple({1, 2}) + "tR" + "q" + std::string(1, '\1') + "h" + std::string(1, '\1') + "e";
  int results = 0;
  int errors = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::string path =
        test::rewrite(dir.path("f"), torch_zip(test::mutated(whole(good), random), kSixteen));
    try {
      load_torch(path);
      ++results;
    } catch (const IoError&) {
      ++errors;
    }
  }
  CHECK(results > 20);
  CHECK(errors > 1000);
}
