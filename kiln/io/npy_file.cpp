#include "kiln/io/npy_file.h"

#include <algorithm>
#include <mutex>

#include "kiln/core/complex.h"
#include "kiln/core/error.h"
#include "kiln/core/portable.h"
#include "kiln/io/atomic_file.h"
#include "kiln/io/byte_order.h"
#include "kiln/io/npy_header.h"
#include "kiln/io/zip_reader.h"
#include "kiln/io/zip_writer.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/host_memory.h"

namespace kiln::io {

namespace {

using detail::NpyHeader;

constexpr const char* kLoadNpy = "load_npy";
constexpr const char* kLoadNpz = "load_npz";
constexpr std::string_view kSuffix = ".npy";

std::string quoted(const std::string& name) { return "'" + printable(name) + "'"; }

[[noreturn]] void refuse(const char* op, const std::string& who, const NpyHeader& header) {
  throw_error<IoError>(op, ": ", who, " cannot be read: ", header.refusal, "; got ",
                       printable(header.descr), "; expected f8, f4, f2, i8, i4, i2, i1, u1 or b1");
}

// The values that follow the header, from `read`.
Tensor read_values(const char* op, const std::string& who, const NpyHeader& header,
                   const detail::NpyRead& read) {
  if (!header.refusal.empty()) refuse(op, who, header);
  Handle<Storage> storage;
  try {
    storage = Storage::allocate(kiln::detail::memory_size(header.data_bytes));
  } catch (const ValueError&) {
    throw_error<IoError>(op, ": no memory for ", who, "; got ", header.data_bytes,
                         " bytes; expected fewer");
  }
  read(storage->data(), storage->bytes());
  const size_t element = size_of(real_dtype(header.dtype));
  if (header.big_endian) swap_byte_order(storage->data(), storage->bytes() / element, element);
  if (header.dtype == DType::boolean) {
    const auto* bytes = static_cast<const uint8_t*>(storage->data());
    const auto* bad =
        std::find_if(bytes, bytes + storage->bytes(), [](uint8_t b) { return b > 1; });
    if (bad != bytes + storage->bytes()) {
      throw_error<IoError>(op, ": ", who, " is malformed: a bool is neither 0 nor 1; got ",
                           int{*bad}, "; expected 0 or 1");
    }
  }
  if (!header.fortran_order) {
    return tensor_over(std::move(storage), header.dtype, header.shape,
                       contiguous_strides(header.shape));
  }
  Strides stride = header.shape;
  int64_t step = 1;
  for (int i = 0; i < stride.rank(); ++i) {
    stride[i] = step;
    step *= std::max<int64_t>(header.shape[i], 1);
  }
  return tensor_over(std::move(storage), header.dtype, header.shape, stride).contiguous();
}

NpyArray described(std::string name, const NpyHeader& header) {
  return {std::move(name), header.shape, header.dtype,
          header.refusal.empty() ? to_string(header.dtype) : printable(header.descr),
          header.refusal};
}

// Reads a file from its start on, piece by piece.
detail::NpyRead from_start(const InputFile& file) {
  return [&file, at = uint64_t{0}](void* out, size_t bytes) mutable {
    file.read_at(at, out, bytes);
    at += bytes;
  };
}

TensorData values_for_numpy(const Tensor& x) {
  const NoGradGuard no_grad;
  if (x.dtype() == DType::bf16) return shared_data(x.to(DType::f32));
  if (kind_of(x.dtype()) == Kind::quantized) {
    throw_error<DTypeError>("save_npy: NumPy has no quantized arrays; got ", x.dtype(),
                            "; expected another dtype (try dequantize)");
  }
  return shared_data(x);
}

}  // namespace

NpyArray describe_npy(const std::string& path) {
  const InputFile file(kLoadNpy, path);
  return described("",
                   detail::read_npy_header(kLoadNpy, quoted(path), file.size(), from_start(file)));
}

Tensor load_npy(const std::string& path) {
  const InputFile file(kLoadNpy, path);
  const detail::NpyRead read = from_start(file);
  const NpyHeader header = detail::read_npy_header(kLoadNpy, quoted(path), file.size(), read);
  return read_values(kLoadNpy, quoted(path), header, read);
}

void save_npy(const std::string& path, const Tensor& x) {
  const TensorData data = values_for_numpy(x);
  AtomicFile file("save_npy", path);
  file.write(detail::make_npy_header(data.dtype(), data.shape()));
  file.write(data.data(), data.bytes());
  file.commit();
}

struct NpzReader::State {
  State(const std::string& path, uint64_t max_ratio)
      : zip(InputFile(kLoadNpz, path, max_ratio)), charged(zip.entries().size()) {
    for (const ZipEntry& entry : zip.entries()) {
      if (!entry.name.ends_with(kSuffix) || entry.name.size() == kSuffix.size()) {
        zip.malformed("an entry is no array", quoted(entry.name), "NAME.npy");
      }
      ZipStream stream(zip, entry);
      const NpyHeader header = read_header(entry, stream);
      arrays.push_back(described(entry.name.substr(0, entry.name.size() - kSuffix.size()), header));
    }
  }

  std::string who(const ZipEntry& entry) const {
    return quoted(entry.name) + " of " + quoted(zip.file().path());
  }
  NpyHeader read_header(const ZipEntry& entry, ZipStream& stream) const {
    return detail::read_npy_header(kLoadNpz, who(entry), entry.size,
                                   [&](void* out, size_t bytes) { stream.read(out, bytes); });
  }

  // The values in memory: once for each array, however often they are asked for.
  void charge(size_t array, const NpyHeader& header) {
    const std::lock_guard lock(mutex);
    if (charged[array]) return;
    zip.file().budget().charge(header.data_bytes * (header.fortran_order ? 2 : 1), "an array");
    charged[array] = true;
  }

  ZipReader zip;
  std::vector<NpyArray> arrays;  // of zip.entries()
  std::mutex mutex;              // of what follows
  std::vector<bool> charged;
};

NpzReader::NpzReader(const std::string& path, uint64_t max_ratio)
    : state_(std::make_unique<State>(path, max_ratio)) {}
NpzReader::~NpzReader() = default;
NpzReader::NpzReader(NpzReader&&) noexcept = default;
NpzReader& NpzReader::operator=(NpzReader&&) noexcept = default;

const std::vector<NpyArray>& NpzReader::arrays() const { return state_->arrays; }

Tensor NpzReader::read(size_t array) const {
  const NoGradGuard no_grad;
  const ZipEntry& entry = state_->zip.entries().at(array);
  ZipStream stream(state_->zip, entry);
  const NpyHeader header = state_->read_header(entry, stream);
  if (header.refusal.empty()) state_->charge(array, header);
  return read_values(kLoadNpz, state_->who(entry), header,
                     [&](void* out, size_t bytes) { stream.read(out, bytes); });
}

nn::StateDict load_npz(const std::string& path, uint64_t max_ratio) {
  const NpzReader reader(path, max_ratio);
  nn::StateDict out;
  for (size_t i = 0; i < reader.arrays().size(); ++i) {
    out.set(reader.arrays()[i].name, reader.read(i));
  }
  return out;
}

void save_npz(const std::string& path, const nn::StateDict& tensors, bool compressed) {
  ZipWriter zip("save_npz", path);
  for (const auto& [name, value] : tensors) {
    if (name.empty()) {
      throw_error<ValueError>("save_npz: a tensor has no name; got ''; expected a non-empty name");
    }
    const TensorData data = values_for_numpy(value);
    const std::string header = detail::make_npy_header(data.dtype(), data.shape());
    zip.add(name + std::string(kSuffix),
            {{header.data(), header.size()}, {data.data(), data.bytes()}},
            compressed ? ZipMethod::deflate : ZipMethod::stored);
  }
  zip.finish();
}

}  // namespace kiln::io
