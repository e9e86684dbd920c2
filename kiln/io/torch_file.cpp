#include "kiln/io/torch_file.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <mutex>
#include <utility>

#include "kiln/core/complex.h"
#include "kiln/core/error.h"
#include "kiln/core/portable.h"
#include "kiln/io/byte_order.h"
#include "kiln/io/torch_storages.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/host_memory.h"

namespace kiln::io {

namespace {

constexpr const char* kLoadTorch = "load_torch";

std::unique_ptr<detail::TorchContents> open(const std::string& path, uint64_t max_ratio) {
  InputFile file(kLoadTorch, path, max_ratio);
  unsigned char head[4] = {};
  file.read_at(0, head, static_cast<size_t>(std::min<uint64_t>(file.size(), sizeof head)));
  if (head[0] == 'P' && head[1] == 'K') return detail::open_torch_zip(std::move(file));
  if (head[0] == 0x80) return detail::open_torch_legacy(std::move(file));
  if (file.size() > 512) {
    char magic[5] = {};
    file.read_at(257, magic, sizeof magic);
    if (std::string(magic, sizeof magic) == "ustar") {
      throw_error<IoError>(kLoadTorch, ": '", path,
                           "' is a tar archive, the form of PyTorch before 0.1.10; got a form that "
                           "Kiln does not read; expected one of torch.save (try loading and saving "
                           "it with PyTorch)");
    }
  }
  throw_error<IoError>(kLoadTorch, ": '", path, "' is no file of PyTorch; got other first bytes; ",
                       "expected a zip archive or a pickle");
}

// The bytes of the file that a tensor reaches: its first element, and one past its last.
struct Extent {
  uint64_t begin = 0;
  uint64_t end = 0;
};
Extent extent_of(const StoredTensorInfo& t) {
  int64_t last = t.offset;
  for (int i = 0; i < t.shape.rank(); ++i) {
    if (t.shape[i] == 0) return {};
    last += (t.shape[i] - 1) * t.stride[i];
  }
  const auto element = static_cast<uint64_t>(size_of(t.dtype));
  return {static_cast<uint64_t>(t.offset) * element, static_cast<uint64_t>(last + 1) * element};
}

}  // namespace

struct TorchReader::File {
  File(const std::string& path, uint64_t max_ratio)
      : contents(open(path, max_ratio)),
        charged(contents->storages().size()),
        inflated(contents->storages().size()) {}

  [[noreturn]] void fail(const std::string& what, const std::string& got,
                         const std::string& expected) const {
    throw_error<IoError>(kLoadTorch, ": '", contents->file().path(), "': ", what, "; got ", got,
                         "; expected ", expected);
  }

  Handle<Storage> allocate(uint64_t bytes) const {
    try {
      return Storage::allocate(kiln::detail::memory_size(bytes));
    } catch (const ValueError&) {
      fail("no memory for a storage", concat(bytes, " bytes"), "fewer");
    }
  }

  // What every reader does with bytes that came from a storage.
  void finish(const StoredTensorInfo& tensor, Storage& storage) const {
    const size_t element = size_of(real_dtype(tensor.dtype));
    if (contents->is_big_endian()) {
      swap_byte_order(storage.data(), storage.bytes() / element, element);
    }
    check_bools(tensor, storage);
  }
  // A bool that is neither 0 nor 1 would be undefined behaviour wherever it is used.
  void check_bools(const StoredTensorInfo& tensor, const Storage& storage) const {
    if (tensor.dtype != DType::boolean) return;
    const auto* bytes = static_cast<const uint8_t*>(storage.data());
    const auto* end = bytes + storage.bytes();
    const auto* bad = std::find_if(bytes, end, [](uint8_t b) { return b > 1; });
    if (bad != end) fail("a bool is neither 0 nor 1", concat(int{*bad}), "0 or 1");
  }

  void check_readable(const StoredTensorInfo& tensor) const {
    if (tensor.refusal.empty()) return;
    fail(concat("a tensor of ", tensor.type_name, " cannot be read: ", tensor.refusal),
         concat(tensor.type_name, " ", tensor.shape), "a dtype of Kiln");
  }

  // The bytes of a storage as the file has them. However often it is asked for, the file pays once:
  // more is the caller's wish.
  Handle<Storage> read_whole(size_t storage) const {
    const auto bytes = static_cast<uint64_t>(contents->storages()[storage].bytes);
    {
      const std::lock_guard lock(mutex);
      if (!charged[storage]) contents->file().budget().charge(bytes, "a tensor");
      charged[storage] = true;
    }
    Handle<Storage> out = allocate(bytes);
    contents->read_storage(storage, out->data());
    return out;
  }

  // The same, or what read_extent kept, which then nobody else has.
  Handle<Storage> take_whole(size_t storage) const {
    {
      const std::lock_guard lock(mutex);
      if (inflated[storage]) return std::exchange(inflated[storage], {});
    }
    return read_whole(storage);
  }

  // The part of a storage that a tensor sees. A compressed storage is inflated once and kept: it
  // may have a thousand tensors.
  Handle<Storage> read_extent(const StoredTensorInfo& tensor, const Extent& extent) const {
    Handle<Storage> out = allocate(extent.end - extent.begin);
    if (!contents->is_compressed(tensor.storage)) {
      contents->read_part(tensor.storage, extent.begin, out->data(), out->bytes());
      return out;
    }
    Handle<Storage> whole;
    {
      const std::lock_guard lock(mutex);
      whole = inflated[tensor.storage];
    }
    if (!whole) {
      whole = read_whole(tensor.storage);
      const std::lock_guard lock(mutex);
      inflated[tensor.storage] = whole;
    }
    if (out->bytes() > 0) {
      std::memcpy(out->data(), static_cast<const char*>(whole->data()) + extent.begin,
                  out->bytes());
    }
    return out;
  }

  std::unique_ptr<detail::TorchContents> contents;
  mutable std::mutex mutex;  // of what follows
  mutable std::vector<bool> charged;
  mutable std::vector<Handle<Storage>> inflated;
};

TorchReader::TorchReader(const std::string& path, uint64_t max_ratio)
    : file_(std::make_unique<File>(path, max_ratio)) {}
TorchReader::~TorchReader() = default;
TorchReader::TorchReader(TorchReader&&) noexcept = default;
TorchReader& TorchReader::operator=(TorchReader&&) noexcept = default;

const PickleValue& TorchReader::value() const { return file_->contents->value(); }

bool TorchReader::is_legacy() const { return file_->contents->is_legacy(); }

const std::string& TorchReader::location(const StoredTensorInfo& tensor) const {
  static const std::string cpu = "cpu";
  return tensor.refusal.empty() ? file_->contents->storages()[tensor.storage].location : cpu;
}

Budget& TorchReader::budget() const { return file_->contents->file().budget(); }

Tensor TorchReader::read(const StoredTensorInfo& tensor) const {
  file_->check_readable(tensor);
  const NoGradGuard no_grad;
  const Extent extent = extent_of(tensor);
  const auto whole = static_cast<uint64_t>(file_->contents->storages()[tensor.storage].bytes);
  const auto element = static_cast<int64_t>(size_of(tensor.dtype));
  // A whole storage is read with its checksum.
  const bool all = extent.end - extent.begin == whole;
  Handle<Storage> storage = all && !file_->contents->is_compressed(tensor.storage)
                                ? file_->read_whole(tensor.storage)
                                : file_->read_extent(tensor, extent);
  file_->finish(tensor, *storage);
  const size_t held = storage->bytes();
  const int64_t offset =
      extent.end == extent.begin ? 0 : tensor.offset - static_cast<int64_t>(extent.begin) / element;
  const Tensor view =
      tensor_over(std::move(storage), tensor.dtype, tensor.shape, tensor.stride, offset);
  const size_t used = static_cast<size_t>(view.numel()) * size_of(tensor.dtype);
  if (!view.is_contiguous()) return view.contiguous();
  return used == held ? view : view.clone();
}

namespace {

// Replaces each tensor of the file by one with values.
class TensorLoader {
 public:
  using Load = std::function<Tensor(const StoredTensorInfo&)>;
  TensorLoader(std::string path, Load load) : path_(std::move(path)), load_(std::move(load)) {}

  PickleValue map(const PickleValue& value) {
    if (const auto* stored = value.get<StoredTensor>()) {
      if (!(*stored)->refusal.empty()) {
        throw_error<IoError>(kLoadTorch, ": '", path_, "': the tensor '", printable(place()),
                             "' cannot be read: ", (*stored)->refusal, "; got ",
                             (*stored)->type_name, " ", (*stored)->shape,
                             "; expected a dtype of Kiln");
      }
      return load_(**stored);
    }
    if (const auto* list = value.get<PickleList>()) return PickleList(items(*list));
    if (const auto* tuple = value.get<PickleTuple>()) return PickleTuple{items(tuple->items)};
    if (const auto* set = value.get<PickleSet>()) {
      return PickleSet{items(set->items), set->frozen};
    }
    if (const auto* dict = value.get<PickleDict>()) {
      return PickleDict{pairs(dict->items), pairs(dict->attributes), dict->ordered};
    }
    return value;
  }

 private:
  // Where the value at hand is: "model.0.weight". Made when it is needed: names can be long.
  std::string place() const {
    std::string out;
    for (const Step& step : steps_) {
      if (!out.empty()) out += '.';
      out +=
          step.key == nullptr ? std::to_string(step.index) : printable(scalar_text(*step.key), 200);
    }
    return out;
  }
  std::vector<PickleValue> items(const std::vector<PickleValue>& values) {
    std::vector<PickleValue> out;
    out.reserve(values.size());
    steps_.push_back({});
    for (size_t i = 0; i < values.size(); ++i) {
      steps_.back() = {nullptr, i};
      out.push_back(map(values[i]));
    }
    steps_.pop_back();
    return out;
  }
  std::vector<PickleItem> pairs(const std::vector<PickleItem>& values) {
    std::vector<PickleItem> out;
    out.reserve(values.size());
    steps_.push_back({});
    for (const PickleItem& item : values) {
      steps_.back() = {&item.key, 0};
      out.push_back({map(item.key), map(item.value)});
    }
    steps_.pop_back();
    return out;
  }

  struct Step {
    const PickleValue* key = nullptr;
    size_t index = 0;  // without a key
  };
  std::string path_;
  Load load_;
  std::vector<Step> steps_;
};

}  // namespace

// Reads each storage once, when the first tensor over it asks.
class TorchReader::Sharer {
 public:
  explicit Sharer(const File& file) : file_(file), storages_(file.contents->storages().size()) {}

  Tensor read(const StoredTensorInfo& tensor) {
    file_.check_readable(tensor);
    Shared& shared = storages_[tensor.storage];
    const size_t element = size_of(real_dtype(tensor.dtype));
    const bool is_bool = tensor.dtype == DType::boolean;
    if (!shared.storage) {
      shared = {file_.take_whole(tensor.storage), element, is_bool};
      file_.check_bools(tensor, *shared.storage);
      if (file_.contents->is_big_endian()) {
        swap_byte_order(shared.storage->data(), shared.storage->bytes() / element, element);
      }
    }
    if (shared.element != element && file_.contents->is_big_endian()) {
      file_.fail("tensors of dtypes of different size share a storage of a big-endian machine",
                 concat(element, " and ", shared.element, " bytes"), "one size");
    }
    // Writing numbers through one tensor would make bools of the other that are none.
    if (shared.is_bool != is_bool) {
      file_.fail("tensors of bool and of another dtype share a storage", "both",
                 "storages of one dtype, as PyTorch writes them");
    }
    Tensor out =
        tensor_over(shared.storage, tensor.dtype, tensor.shape, tensor.stride, tensor.offset);
    if (tensor.requires_grad && (out.is_floating_point() || is_complex(out.dtype())))
      out.requires_grad_();
    return out;
  }

 private:
  struct Shared {
    Handle<Storage> storage;
    size_t element = 0;  // bytes, for the byte order
    bool is_bool = false;
  };
  const File& file_;
  std::vector<Shared> storages_;
};

std::vector<Tensor> TorchReader::read(const std::vector<StoredTensor>& tensors) const {
  Sharer sharer(*file_);
  std::vector<Tensor> out;
  out.reserve(tensors.size());
  for (const StoredTensor& tensor : tensors) out.push_back(sharer.read(*tensor));
  return out;
}

PickleValue TorchReader::read_all() const {
  Sharer sharer(*file_);
  return TensorLoader(file_->contents->file().path(),
                      [&](const StoredTensorInfo& tensor) { return sharer.read(tensor); })
      .map(value());
}

PickleValue load_torch(const std::string& path, uint64_t max_ratio) {
  return TorchReader(path, max_ratio).read_all();
}

}  // namespace kiln::io
