#include "tests/fuzz/file_seeds.h"

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "kiln/core/config.h"
#include "kiln/data/idx.h"
#include "kiln/io/gguf_file.h"
#include "kiln/io/image.h"
#include "kiln/io/model_file.h"
#include "kiln/io/npy_file.h"
#include "kiln/io/recorder.h"
#include "kiln/io/sharded.h"
#include "kiln/io/torch_file.h"
#include "kiln/kiln.h"
#include "kiln/text/byte_level_bpe.h"
#include "kiln/text/sentence_piece.h"
#include "kiln/text/word_piece.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/gzip.h"
#include "tests/support/pickle_bytes.h"
#include "tests/support/temp_dir.h"

namespace kiln::fuzz {

namespace {

namespace pickle = test::pickle;

struct Net : nn::Module {
  nn::Linear fc{3, 2};
  KILN_MODULE(Net, fc)
};

struct InnerConfig {
  double rate = 0.5;
  std::optional<int64_t> steps = {};
  KILN_CONFIG(InnerConfig, rate, steps)
};
struct FuzzConfig {
  Required<int64_t> in;
  std::string name = "net";
  std::vector<double> list = {};
  std::map<std::string, InnerConfig> parts = {};
  DType dtype = DType::f32;
  KILN_CONFIG(FuzzConfig, in, name, list, parts, dtype)
};

// Everything that there is to ask of a model file: each tensor alone, all together, the values.
void read_model(const std::string& path) {
  const auto reader = io::open_model_file(path);
  if (reader->value() != nullptr) to_text(*reader->value(), 1000);
  for (const io::TensorEntry& entry : reader->entries()) {
    if (entry.refusal.empty()) reader->read(entry.name);
  }
  reader->read_all();
}

void read_checkpoint(const std::string& path) {
  Net net;
  optim::Adam adam(net.parameters());
  io::load_checkpoint(path, net, adam);
}

template <class Recorder>
FileReader record_reader(const char* name) {
  return {name, "." + Recorder().extension(),
          [](const std::string& path) { Recorder().load_record(path); }};
}

std::vector<FileReader> make_readers() {
  std::vector<FileReader> out;
  out.push_back({"model", "", read_model});
  out.push_back({"torch", ".pt", [](const std::string& path) { io::load_torch(path); }});
  out.push_back({"lazy model", ".pt", [](const std::string& path) {
                   Net net;
                   io::load_model(net, path, /*strict=*/false);
                 }});
  out.push_back({"checkpoint", ".safetensors", read_checkpoint});
  out.push_back({"gguf", ".gguf", [](const std::string& path) { io::load_gguf(path); }});
  out.push_back({"sentence piece", ".model", [](const std::string& path) {
                   const auto model = text::SentencePiece::from_file(path);
                   model.decode(model.encode("the tensors \xef\xbc\xa1 of <tool> x\n"));
                 }});
  out.push_back({"byte-level BPE", ".json", [](const std::string& path) {
                   const auto tokenizer = text::ByteLevelBpe::from_file(path);
                   tokenizer.decode(tokenizer.encode("the tensors \xef\xbc\xa1 of <s> 1234\n x"));
                 }});
  out.push_back({"WordPiece", ".json", [](const std::string& path) {
                   const auto tokenizer = text::WordPiece::from_file(path);
                   tokenizer.decode(
                       tokenizer.encode("the t\xc3\xa9nsors \xef\xbc\xa1, don't [SEP] x"));
                 }});
  out.push_back({"idx", ".idx", [](const std::string& path) { data::read_idx(path); }});
  out.push_back({"image", ".png", [](const std::string& path) { io::read_gray_image(path); }});
  out.push_back({"colour image", ".jpg", [](const std::string& path) {
                   io::read_image(path, {.apply_exif_orientation = true});
                 }});
  out.push_back({"config", ".json", [](const std::string& path) { FuzzConfig::load(path); }});
  out.push_back(record_reader<io::SafetensorsRecorder<>>("safetensors record"));
  out.push_back(record_reader<io::NamedMpkFileRecorder<>>("mpk record"));
  out.push_back(record_reader<io::NamedMpkGzFileRecorder<>>("mpk.gz record"));
  out.push_back(record_reader<io::CborFileRecorder<>>("cbor record"));
  out.push_back(record_reader<io::PrettyJsonFileRecorder<>>("pretty json record"));
  out.push_back(record_reader<io::JsonFileRecorder<>>("json record"));
  out.push_back(record_reader<io::JsonGzFileRecorder<>>("json.gz record"));
  return out;
}

size_t reader_named(const std::string& name) {
  const auto& all = file_readers();
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].name == name) return i;
  }
  throw std::logic_error("no reader is named " + name);
}

class SeedMaker {
 public:
  explicit SeedMaker(std::string folder) : folder_(std::move(folder)) {}

  void add(const std::string& reader, std::string bytes) {
    seeds_.push_back({reader_named(reader), std::move(bytes)});
  }
  // What `write(path)` writes, for these readers.
  template <class F>
  void written(const std::vector<std::string>& readers, const std::string& name, F&& write) {
    const std::string path = folder_ + "/" + name;
    write(path);
    for (const std::string& reader : readers) add(reader, test::read_bytes(path));
  }
  std::vector<FileSeed> take() { return std::move(seeds_); }

 private:
  std::string folder_;
  std::vector<FileSeed> seeds_;
};

void add_models(SeedMaker& out) {
  const Tensor x = arange(12).to(f32).reshape({3, 4});
  const nn::StateDict tensors{{"fc.weight", x.slice(0, 0, 2).slice(1, 0, 3)},
                              {"fc.bias", zeros({2})},
                              {"turned", x.t()},
                              {"mask", x.gt(Scalar(3))},
                              {"half", x.to(f16)},
                              {"n", full({}, 7, {i64})},
                              {"none", zeros({0, 3})}};
  const io::SaveOptions texts{{{"who", "me"}, {"epoch", "3"}}};
  out.written({"model", "lazy model"}, "a.safetensors",
              [&](auto& path) { io::save_model_file(path, tensors, texts); });
  out.written({"model", "torch", "lazy model"}, "a.pt",
              [&](auto& path) { io::save_model_file(path, tensors, texts); });
  out.written({"model"}, "a.npz", [&](auto& path) { io::save_npz(path, tensors); });
  out.written({"model"}, "b.npz", [&](auto& path) { io::save_npz(path, tensors, true); });
  out.written({"model"}, "a.npy", [&](auto& path) { io::save_npy(path, x); });
  out.written({"model"}, "s.safetensors.index.json",
              [&](auto& path) { io::save_sharded(path.substr(0, path.size() - 11), tensors, 40); });
  // As a training program would write it.
  out.written({"torch", "model"}, "checkpoint.pt", [&](auto& path) {
    io::PickleDict dict;
    dict.set("model", io::pickle_of(tensors));
    dict.set("epoch", 3);
    dict.set("losses",
             io::PickleList{0.5, 1, int64_t{1} << 40, io::PickleBigInt{"-99999999999999999999"}});
    dict.set("more", io::PickleTuple{{"text",
                                      true,
                                      {},
                                      io::PickleBytes{"\x01\xff"},
                                      DType::f16,
                                      std::complex<double>(1, 2)}});
    dict.set("set", io::PickleSet{{1, 2, "x"}});
    dict.set("where", io::PickleObject{"torch.device", {"cpu"}});
    io::save_torch(path, io::PickleValue(std::move(dict)));
  });
}

// Pickles with the opcodes that Kiln's writer does not use, and those that cost most.
void add_pickles(SeedMaker& out) {
  const auto zip = [&](const std::string& body, const std::string& data = "") {
    out.add("torch", pickle::torch_zip(pickle::whole(body), data, true));
  };
  const std::string one = pickle::tensor(pickle::storage(4), 0, {2, 2}, {2, 1});
  const std::string values(16, '\1');
  zip(one, values);
  zip("(" + one + pickle::tensor(pickle::storage(4), 0, {16}, {0}) + "l", values);
  zip("](" + std::string(8, 'N') + std::string(8, '2') + "e\x94q" + std::string(1, '\0') + "h" +
      std::string(1, '\0') + "0");
  zip("\x8f(K\1K\2\x90(K\1K\2\x91");
  zip("}(" + pickle::text("a") + "K\1" + pickle::text("b") + "](K\1K\2eu");
  zip(pickle::global("collections", "OrderedDict") + ")R}" + pickle::text("_metadata") + "}sb");
  zip("\x8a\x10" + std::string(16, '\x7f'));
  zip(pickle::global("torch", "device") + pickle::text("cuda") + "K\1\x86R");
  zip(pickle::global("torch", "Size") + "(K\1K\2t\x85R");
  zip(pickle::global("_codecs", "encode") + pickle::text("\xc3\xbf") + pickle::text("latin1") +
      "\x86R");
  out.add("torch",
          pickle::torch_legacy(pickle::whole(one), pickle::whole("]" + pickle::text("0") + "a"),
                               test::little_endian(4, 8) + values));
}

void add_records(SeedMaker& out) {
  Net net;
  const nn::Record record = net.into_record();
  const auto write = [&](const std::string& reader, const nn::Recorder& recorder) {
    out.written({reader}, "r." + recorder.extension(),
                [&](auto& path) { recorder.record(record, path); });
  };
  write("safetensors record", io::SafetensorsRecorder<>());
  write("mpk record", io::NamedMpkFileRecorder<>());
  write("mpk.gz record", io::NamedMpkGzFileRecorder<>());
  write("cbor record", io::CborFileRecorder<>());
  write("pretty json record", io::PrettyJsonFileRecorder<>());
  write("json record", io::JsonFileRecorder<>());
  write("json.gz record", io::JsonGzFileRecorder<>());
}

void add_others(SeedMaker& out) {
  Net net;
  optim::Adam adam(net.parameters());
  net.fc(ones({1, 3})).sum().backward_accumulate();
  adam.step();
  out.written({"checkpoint"}, "c.safetensors", [&](auto& path) {
    io::save_checkpoint(path, net, adam, {{"state", "{\"epoch\": 1}"}});
  });
  const FuzzConfig config{.in = 3, .list = {1, 2, 3}, .parts = {{"a", {}}, {"b", {.steps = 3}}}};
  out.add("config", config.to_json_string());
  out.add("config", test::gzipped(config.to_json_string()));
  const std::string idx = std::string("\0\0\x08\x02\0\0\0\2\0\0\0\3", 12) + "abcdef";
  out.add("idx", idx);
  out.add("idx", test::gzipped(idx));
  out.add("image", io::encode_png_gray(
                       TensorData(std::vector<uint8_t>(12 * 9, uint8_t{200}), Shape{12, 9})));
  out.add("image", std::string(784, '\x40'));
  using test::GgufBytes;
  const std::string words = GgufBytes::raw(uint32_t{8}) + GgufBytes::raw(uint64_t{2}) +
                            GgufBytes::text("a") + GgufBytes::text("bc");
  out.add("gguf", GgufBytes()
                      .value("general.architecture", 8, GgufBytes::text("llama"))
                      .value("general.alignment", 4, GgufBytes::raw(uint32_t{32}))
                      .value("words", 9, words)
                      .tensor("f", {3, 2}, 0, std::string(24, '\1'))
                      .tensor("h", {3}, 1, std::string(6, '\1'))
                      .tensor("q8", {64, 2}, 8, std::string(4 * 34, '\1'))
                      .tensor("q4", {32, 3}, 2, std::string(3 * 18, '\1'))
                      .tensor("k", {256, 1}, 12, std::string(144, '\1'))
                      .tensor("k6", {256, 1}, 14, std::string(210, '\1'))
                      .bytes());
}

}  // namespace

const std::vector<FileReader>& file_readers() {
  static const std::vector<FileReader> all = make_readers();
  return all;
}

std::vector<FileSeed> file_seeds(const std::string& folder, const std::string& fixtures) {
  SeedMaker out(folder);
  add_models(out);
  add_pickles(out);
  add_records(out);
  add_others(out);
  for (const char* kind : {"torch", "numpy", "tokenizers", "images"}) {
    std::error_code error;
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(fixtures + "/" + kind, error)) {
      if (entry.file_size() < 64 * 1024) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    for (const auto& file : files) {
      const char* reader = "model";
      if (std::string(kind) == "images") {
        if (file.extension() == ".txt") continue;  // what Pillow reads
        reader = "colour image";
      } else if (std::string(kind) == "tokenizers") {
        const auto stem = file.stem();
        if (stem == "gpt2" || stem == "llama3") {
          reader = "byte-level BPE";
        } else if (stem == "bert" || stem == "letters") {
          reader = "WordPiece";
        } else if (file.extension() == ".model") {
          reader = "sentence piece";
        } else {
          continue;  // what the readers are compared with
        }
      }
      out.add(reader, test::read_bytes(file));
    }
  }
  return out.take();
}

}  // namespace kiln::fuzz
