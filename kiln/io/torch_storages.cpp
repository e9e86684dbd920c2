#include "kiln/io/torch_storages.h"

#include "kiln/core/error.h"
#include "kiln/io/pickle_machine.h"
#include "kiln/io/zip_format.h"
#include "kiln/io/zip_reader.h"

namespace kiln::io::detail {

namespace {

// A hundred thousand tensors need a fifth of it.
constexpr uint64_t kMaxPickle = uint64_t{64} << 20;
constexpr const char* kLegacyMagic = "119547037146038801333356";
constexpr int64_t kLegacyProtocol = 1001;

[[noreturn]] void malformed(const InputFile& file, const std::string& what, const std::string& got,
                            const std::string& expected) {
  throw_error<IoError>(file.op(), ": '", file.path(), "' is malformed: ", what, "; got ", got,
                       "; expected ", expected);
}

// PyTorch 1.6 and later: NAME/data.pkl, NAME/data/KEY for each storage, NAME/byteorder.
class ZipContents final : public TorchContents {
 public:
  explicit ZipContents(InputFile input) : zip_(std::move(input), ZeroChecksum::is_none) {
    const std::string prefix = find_prefix();
    const std::string pickle = zip_.read(*zip_.find(prefix + "data.pkl"), kMaxPickle);
    if (const ZipEntry* order = zip_.find(prefix + "byteorder")) {
      const std::string text = zip_.read(*order, 16);
      big_endian_ = text == "big";
      if (text != "big" && text != "little") {
        malformed(file(), "its byte order is unknown", "'" + printable(text) + "'",
                  "'little' or 'big'");
      }
    }
    TorchObjects objects(file());
    PickleArena arena(file());
    PickleInput bytes(file(), std::string_view(pickle));
    const NodeRef root = PickleMachine(bytes, arena, objects).run();
    if (bytes.left() > 0) bytes.fail("something follows its end", concat(bytes.left(), " bytes"));
    for (const TorchStorage& storage : objects.storages()) {
      const ZipEntry* entry = zip_.find(prefix + "data/" + storage.key);
      const std::string who = concat("storage '", printable(storage.key), "'");
      if (entry == nullptr) malformed(file(), who + " is missing", "no such entry", "its data");
      if (entry->size != static_cast<uint64_t>(storage.bytes)) {
        malformed(file(), who + " has another size than its tensors say",
                  concat(entry->size, " bytes"), concat(storage.bytes));
      }
      entries_.push_back(entry);
    }
    value_ = pickle_tree(arena, objects, root);
    storages_ = objects.storages();
  }

  const InputFile& file() const override { return zip_.file(); }
  bool is_legacy() const override { return false; }
  void read_storage(size_t storage, void* out) const override {
    zip_.read_into(*entries_[storage], out);
  }
  bool is_compressed(size_t storage) const override {
    return entries_[storage]->method != zip::kStored;
  }
  void read_part(size_t storage, uint64_t begin, void* out, size_t bytes) const override {
    file().read_at(entries_[storage]->offset + begin, out, bytes);
  }

 private:
  std::string find_prefix() const {
    std::string prefix;
    for (const ZipEntry& entry : zip_.entries()) {
      const size_t slash = entry.name.find('/');
      if (slash == std::string::npos || entry.name.substr(slash) != "/data.pkl") continue;
      if (!prefix.empty()) malformed(file(), "it has two pickles", entry.name, "one data.pkl");
      prefix = entry.name.substr(0, slash + 1);
    }
    if (prefix.empty()) malformed(file(), "it has no pickle", "no data.pkl", "a PyTorch file");
    if (zip_.find(prefix + "constants.pkl") != nullptr) {
      throw_error<IoError>(file().op(), ": '", file().path(),
                           "' is refused: it is a TorchScript archive, which holds code; got ",
                           "constants.pkl; expected a state dict (in PyTorch: "
                           "torch.save(model.state_dict(), path))");
    }
    return prefix;
  }

  ZipReader zip_;
  std::vector<const ZipEntry*> entries_;  // of storages_
};

// Before PyTorch 1.6: five pickles (magic number, protocol, system, value, keys of the storages),
// then for each storage its number of elements and its values, little-endian on every machine.
class LegacyContents final : public TorchContents {
 public:
  explicit LegacyContents(InputFile input) : input_(std::move(input)) {
    PickleInput bytes(input_, 0, input_.size());
    TorchObjects objects(input_);
    PickleArena head(input_);
    const NodeRef magic = PickleMachine(bytes, head, objects).run();
    const auto* number = head.get<PickleBigInt>(magic);
    if (number == nullptr || number->decimal != kLegacyMagic) {
      malformed(input_, "it is a pickle, but not of PyTorch", describe(head, magic),
                "PyTorch's magic number");
    }
    const NodeRef protocol = PickleMachine(bytes, head, objects).run();
    const auto* version = head.get<int64_t>(protocol);
    if (version == nullptr || *version != kLegacyProtocol) {
      malformed(input_, "its protocol is unknown", describe(head, protocol),
                concat(kLegacyProtocol));
    }
    PickleMachine(bytes, head, objects).run();  // sizes of C types where it was written
    PickleArena arena(input_);
    const NodeRef root = PickleMachine(bytes, arena, objects).run();
    PickleArena tail(input_);
    const NodeRef keys = PickleMachine(bytes, tail, objects).run();
    locate(tail, keys, objects, bytes.position());
    value_ = pickle_tree(arena, objects, root);
    storages_ = objects.storages();
  }

  const InputFile& file() const override { return input_; }
  bool is_legacy() const override { return true; }
  void read_storage(size_t storage, void* out) const override {
    read_part(storage, 0, out, static_cast<size_t>(storages_[storage].bytes));
  }
  bool is_compressed(size_t) const override { return false; }
  void read_part(size_t storage, uint64_t begin, void* out, size_t bytes) const override {
    input_.read_at(offsets_[storage] + begin, out, bytes);
  }

 private:
  void locate(const PickleArena& arena, NodeRef keys, const TorchObjects& objects,
              uint64_t position) {
    const std::vector<TorchStorage>& storages = objects.storages();
    const auto* list = arena.sequence(keys);
    if (list == nullptr || list->size() != storages.size()) {
      malformed(input_, "its list of storages is wrong", describe(arena, keys),
                concat("a list of ", storages.size(), " keys"));
    }
    offsets_.assign(storages.size(), 0);
    std::unordered_map<std::string, size_t> index;
    for (size_t i = 0; i < storages.size(); ++i) index[storages[i].key] = i;
    for (const NodeRef ref : *list) {
      const auto* key = arena.get<std::string>(ref);
      const auto found = key == nullptr ? index.end() : index.find(*key);
      if (found == index.end() || offsets_[found->second] != 0) {
        malformed(input_, "a storage is unknown, or there twice", describe(arena, ref),
                  "the key of a storage");
      }
      const TorchStorage& storage = storages[found->second];
      const uint64_t left = input_.size() - position;
      int64_t elements = -1;
      if (left >= sizeof elements) input_.read_at(position, &elements, sizeof elements);
      if (elements != storage.bytes / static_cast<int64_t>(storage.type->element) ||
          left - sizeof elements < static_cast<uint64_t>(storage.bytes)) {
        malformed(input_,
                  concat("storage '", printable(storage.key), "' has another size than its ",
                         "tensors say, or is truncated"),
                  concat(elements, " elements and ", left, " bytes"),
                  concat(storage.bytes, " bytes"));
      }
      offsets_[found->second] = position + sizeof elements;
      position += sizeof elements + static_cast<uint64_t>(storage.bytes);
    }
    if (position != input_.size()) {
      malformed(input_, "something follows its last storage",
                concat(input_.size() - position, " bytes"), "the end");
    }
  }

  InputFile input_;
  std::vector<uint64_t> offsets_;  // of storages_, in the file
};

}  // namespace

std::unique_ptr<TorchContents> open_torch_zip(InputFile file) {
  return std::make_unique<ZipContents>(std::move(file));
}

std::unique_ptr<TorchContents> open_torch_legacy(InputFile file) {
  return std::make_unique<LegacyContents>(std::move(file));
}

}  // namespace kiln::io::detail
