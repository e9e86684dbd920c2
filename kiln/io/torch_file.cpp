#include "kiln/io/torch_file.h"

#include <algorithm>
#include <functional>

#include "kiln/core/complex.h"
#include "kiln/core/error.h"
#include "kiln/io/byte_order.h"
#include "kiln/io/torch_storages.h"
#include "kiln/tensor/grad_mode.h"
#include "kiln/tensor/host_memory.h"

namespace kiln::io {

namespace {

constexpr const char* kLoad = "load_torch";

std::unique_ptr<detail::TorchContents> open(const std::string& path) {
  InputFile file(kLoad, path);
  unsigned char head[4] = {};
  file.read_at(0, head, static_cast<size_t>(std::min<uint64_t>(file.size(), sizeof head)));
  if (head[0] == 'P' && head[1] == 'K') return detail::open_torch_zip(std::move(file));
  if (head[0] == 0x80) return detail::open_torch_legacy(std::move(file));
  if (file.size() > 512) {
    char magic[5] = {};
    file.read_at(257, magic, sizeof magic);
    if (std::string(magic, sizeof magic) == "ustar") {
      throw_error<IoError>(kLoad, ": '", path,
                           "' is a tar archive, the form of PyTorch before 0.1.10; got a form that "
                           "Kiln does not read; expected one of torch.save (try loading and saving "
                           "it with PyTorch)");
    }
  }
  throw_error<IoError>(kLoad, ": '", path, "' is no file of PyTorch; got other first bytes; ",
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
  explicit File(const std::string& path) : contents(open(path)) {}

  [[noreturn]] void fail(const std::string& what, const std::string& got,
                         const std::string& expected) const {
    throw_error<IoError>(kLoad, ": '", contents->file().path(), "': ", what, "; got ", got,
                         "; expected ", expected);
  }

  Handle<Storage> allocate(uint64_t bytes) const {
    try {
      return Storage::allocate(static_cast<size_t>(bytes));
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
    if (tensor.dtype != DType::boolean) return;
    // A bool that is neither 0 nor 1 would be undefined behaviour wherever it is used.
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

  Handle<Storage> read_whole(const StoredTensorInfo& tensor) const {
    const auto bytes = static_cast<uint64_t>(contents->storages()[tensor.storage].bytes);
    Handle<Storage> storage = allocate(bytes);
    contents->read_storage(tensor.storage, storage->data());
    finish(tensor, *storage);
    return storage;
  }

  std::unique_ptr<detail::TorchContents> contents;
};

TorchReader::TorchReader(const std::string& path) : file_(std::make_unique<File>(path)) {}
TorchReader::~TorchReader() = default;
TorchReader::TorchReader(TorchReader&&) noexcept = default;
TorchReader& TorchReader::operator=(TorchReader&&) noexcept = default;

const PickleValue& TorchReader::value() const { return file_->contents->value(); }

bool TorchReader::is_legacy() const { return file_->contents->is_legacy(); }

Tensor TorchReader::read(const StoredTensorInfo& tensor) const {
  file_->check_readable(tensor);
  const NoGradGuard no_grad;
  const Extent extent = extent_of(tensor);
  const auto whole = static_cast<uint64_t>(file_->contents->storages()[tensor.storage].bytes);
  Handle<Storage> storage;
  int64_t offset = 0;
  if (extent.end - extent.begin < whole) {
    // Only what the tensor needs, where the file gives parts.
    storage = file_->allocate(extent.end - extent.begin);
    if (file_->contents->read_part(tensor.storage, extent.begin, storage->data(),
                                   storage->bytes())) {
      file_->finish(tensor, *storage);
    } else {
      storage = {};
    }
  }
  if (!storage) {
    storage = file_->read_whole(tensor);
    offset = tensor.offset;
  }
  const size_t held = storage->bytes();
  const Tensor view =
      tensor_over(std::move(storage), tensor.dtype, tensor.shape, tensor.stride, offset);
  const size_t used = static_cast<size_t>(view.numel()) * size_of(tensor.dtype);
  return view.is_contiguous() && used == held ? view : view.clone();
}

namespace {

// Replaces each tensor of the file by one with values.
class TensorLoader {
 public:
  using Load = std::function<Tensor(const StoredTensorInfo&)>;
  TensorLoader(std::string path, Load load) : path_(std::move(path)), load_(std::move(load)) {}

  PickleValue map(const PickleValue& value, const std::string& place) const {
    if (const auto* stored = value.get<StoredTensor>()) {
      if (!(*stored)->refusal.empty()) {
        throw_error<IoError>(kLoad, ": '", path_, "': the tensor '", printable(place),
                             "' cannot be read: ", (*stored)->refusal, "; got ",
                             (*stored)->type_name, " ", (*stored)->shape,
                             "; expected a dtype of Kiln");
      }
      return load_(**stored);
    }
    if (const auto* list = value.get<PickleList>()) return PickleList(items(*list, place));
    if (const auto* tuple = value.get<PickleTuple>()) {
      return PickleTuple{items(tuple->items, place)};
    }
    if (const auto* dict = value.get<PickleDict>()) {
      return PickleDict{pairs(dict->items, place), pairs(dict->attributes, place)};
    }
    return value;
  }

 private:
  static std::string join(const std::string& place, const std::string& name) {
    return place.empty() ? name : place + "." + name;
  }
  std::vector<PickleValue> items(const std::vector<PickleValue>& values,
                                 const std::string& place) const {
    std::vector<PickleValue> out;
    out.reserve(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      out.push_back(map(values[i], join(place, std::to_string(i))));
    }
    return out;
  }
  std::vector<PickleItem> pairs(const std::vector<PickleItem>& values,
                                const std::string& place) const {
    std::vector<PickleItem> out;
    out.reserve(values.size());
    for (const PickleItem& item : values) {
      out.push_back({item.key, map(item.value, join(place, scalar_text(item.key)))});
    }
    return out;
  }

  std::string path_;
  Load load_;
};

}  // namespace

// Reads each storage once, when the first tensor over it asks.
class TorchReader::Sharer {
 public:
  explicit Sharer(const File& file) : file_(file), storages_(file.contents->storages().size()) {}

  Tensor read(const StoredTensorInfo& tensor) {
    file_.check_readable(tensor);
    Shared& shared = storages_[tensor.storage];
    // Tensors of two dtypes over one storage (which PyTorch does not write) share nothing.
    if (!shared.storage || shared.dtype != tensor.dtype) {
      shared = {file_.read_whole(tensor), tensor.dtype};
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
    DType dtype = DType::f32;
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
      .map(value(), "");
}

PickleValue load_torch(const std::string& path) { return TorchReader(path).read_all(); }

}  // namespace kiln::io
