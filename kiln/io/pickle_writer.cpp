#include "kiln/io/pickle_writer.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "kiln/core/error.h"
#include "kiln/core/utf8.h"
#include "kiln/io/input_file.h"
#include "kiln/tensor/host_memory.h"

namespace kiln::io::detail {

namespace {

constexpr const char* kOp = "save_torch";
constexpr int kDeepestWritten = 100;  // as the reader has it

// "FloatStorage", or null where PyTorch's files have none.
const char* storage_name(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return "torch DoubleStorage";
    case DType::f32:
      return "torch FloatStorage";
    case DType::f16:
      return "torch HalfStorage";
    case DType::bf16:
      return "torch BFloat16Storage";
    case DType::i64:
      return "torch LongStorage";
    case DType::i32:
      return "torch IntStorage";
    case DType::i16:
      return "torch ShortStorage";
    case DType::i8:
      return "torch CharStorage";
    case DType::u8:
      return "torch ByteStorage";
    case DType::boolean:
      return "torch BoolStorage";
    case DType::c64:
      return "torch ComplexFloatStorage";
    case DType::c128:
      return "torch ComplexDoubleStorage";
    default:
      return nullptr;
  }
}

}  // namespace

PickleWriter::PickleWriter(const PickleValue& value) {
  collect(value, 0);
  out_ = "\x80\x02";
  write(value);
  out_ += '.';
}

// ---- Storages

void PickleWriter::collect(const PickleValue& value, int depth) {
  if (depth > kDeepestWritten) {
    throw_error<ValueError>(kOp, ": the value is nested too deeply; got more than ",
                            kDeepestWritten, " levels; expected fewer");
  }
  const auto all = [&](const auto& items) {
    for (const auto& item : items) {
      if constexpr (requires { item.key; }) {
        collect(item.key, depth + 1);
        collect(item.value, depth + 1);
      } else {
        collect(item, depth + 1);
      }
    }
  };
  if (const auto* tensor = value.get<Tensor>()) collect_tensor(*tensor);
  if (value.is<StoredTensor>()) {
    throw_error<ValueError>(kOp,
                            ": a tensor still lies in another file; got a StoredTensor; "
                            "expected a Tensor (try TorchReader::read_all)");
  }
  if (const auto* list = value.get<PickleList>()) all(*list);
  if (const auto* tuple = value.get<PickleTuple>()) all(tuple->items);
  if (const auto* set = value.get<PickleSet>()) all(set->items);
  if (const auto* object = value.get<PickleObject>()) all(object->arguments);
  if (const auto* dict = value.get<PickleDict>()) {
    all(dict->items);
    all(dict->attributes);
  }
}

void PickleWriter::collect_tensor(const Tensor& x) {
  if (storage_name(x.dtype()) == nullptr) {
    throw_error<DTypeError>(kOp, ": the tensor cannot be stored; got ", x.dtype(),
                            "; expected a dtype that is not quantized");
  }
  HostMemory memory;
  if (auto host = host_memory(x)) {
    memory = std::move(*host);
  } else {
    const TensorData data = x.to_data();
    memory = {data.storage(), contiguous_strides(data.shape()),
              static_cast<int64_t>(data.byte_offset() / size_of(data.dtype()))};
  }
  int64_t last = memory.offset - 1;
  if (x.numel() > 0) {
    last = memory.offset;
    for (int i = 0; i < x.dim(); ++i) last += (x.shape()[i] - 1) * memory.stride[i];
  }
  const size_t element = size_of(x.dtype());
  const size_t begin = static_cast<size_t>(memory.offset) * element;
  const size_t end = static_cast<size_t>(last + 1) * element;
  const auto [found, is_new] = by_memory_.try_emplace(
      std::pair<const void*, DType>(memory.storage->data(), x.dtype()), storages_.size());
  if (is_new) {
    storages_.push_back({memory.storage, x.dtype(), begin, end});
  } else {
    // All that any of them sees; an empty one sees nothing.
    SavedStorage& known = storages_[found->second];
    if (known.begin == known.end) known.begin = known.end = begin;
    if (begin != end) {
      known.begin = std::min(known.begin, begin);
      known.end = std::max(known.end, end);
    }
  }
  views_.push_back({found->second, memory.stride, memory.offset});
}

// ---- Opcodes

void PickleWriter::number(uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) out_ += static_cast<char>(value >> (8 * i) & 0xff);
}

void PickleWriter::integer(int64_t value) {
  if (value >= 0 && value < 256) {
    out_ += 'K';
    number(static_cast<uint64_t>(value), 1);
  } else if (value >= std::numeric_limits<int32_t>::min() &&
             value <= std::numeric_limits<int32_t>::max()) {
    out_ += 'J';
    number(static_cast<uint32_t>(value), 4);
  } else {
    out_ += "\x8a\x08";  // LONG1 of 8 bytes
    number(static_cast<uint64_t>(value), 8);
  }
}

void PickleWriter::text(std::string_view value) {
  if (!is_utf8(value) || value.size() > std::numeric_limits<uint32_t>::max()) {
    throw_error<ValueError>(kOp, ": a text cannot be stored; got '", printable(std::string(value)),
                            "'; expected UTF-8 of less than 4 GiB");
  }
  out_ += 'X';
  number(value.size(), 4);
  out_ += value;
}

// "module name". The second time it is taken from the memo.
void PickleWriter::global(const std::string& module_and_name) {
  const auto known = memo_.find(module_and_name);
  if (known != memo_.end()) {
    out_ += 'h';
    number(known->second, 1);
    return;
  }
  std::string lines = module_and_name;
  lines[lines.find(' ')] = '\n';
  out_ += 'c' + lines + '\n';
  if (memo_.size() == 256) return;  // the places that one byte can name
  out_ += 'q';
  number(memo_.size(), 1);
  memo_.emplace(module_and_name, memo_.size());
}

// ---- Values

void PickleWriter::write(const PickleValue& value) {
  if (value.is_none()) {
    out_ += 'N';
  } else if (const auto* flag = value.get<bool>()) {
    out_ += *flag ? '\x88' : '\x89';
  } else if (const auto* i = value.get<int64_t>()) {
    integer(*i);
  } else if (const auto* big = value.get<PickleBigInt>()) {
    write_decimal(big->decimal);
  } else if (const auto* x = value.get<double>()) {
    out_ += 'G';
    const auto bits = std::bit_cast<uint64_t>(*x);
    for (int shift = 56; shift >= 0; shift -= 8) out_ += static_cast<char>(bits >> shift & 0xff);
  } else if (const auto* z = value.get<std::complex<double>>()) {
    global("__builtin__ complex");
    write(PickleValue(z->real()));
    write(PickleValue(z->imag()));
    out_ += "\x86R";
  } else if (const auto* s = value.get<std::string>()) {
    text(*s);
  } else if (const auto* bytes = value.get<PickleBytes>()) {
    write_bytes(bytes->bytes);
  } else if (const auto* dtype = value.get<DType>()) {
    global("torch " + std::string(name_of(*dtype)));
  } else if (const auto* list = value.get<PickleList>()) {
    out_ += "](";
    for (const PickleValue& item : *list) write(item);
    out_ += 'e';
  } else if (const auto* tuple = value.get<PickleTuple>()) {
    write_tuple(tuple->items);
  } else if (const auto* set = value.get<PickleSet>()) {
    // PyTorch's reader takes sets and no frozensets; so these are written only where sets cannot
    // be.
    global(in_key_ && set->frozen ? "__builtin__ frozenset" : "__builtin__ set");
    out_ += "](";
    for (const PickleValue& item : set->items) write_key(item);
    out_ += "e\x85R";
  } else if (const auto* dict = value.get<PickleDict>()) {
    write_dict(*dict);
  } else if (const auto* object = value.get<PickleObject>()) {
    write_object(*object);
  } else if (const auto* tensor = value.get<Tensor>()) {
    write_tensor(*tensor);
  }
}

// A key or a member of a set, which must be hashable.
void PickleWriter::write_key(const PickleValue& value) {
  const bool outer = std::exchange(in_key_, true);
  write(value);
  in_key_ = outer;
}

void PickleWriter::write_tuple(const std::vector<PickleValue>& items) {
  out_ += '(';
  for (const PickleValue& item : items) write(item);
  out_ += 't';
}

void PickleWriter::write_shape(const Shape& numbers) {
  out_ += '(';
  for (const int64_t n : numbers) integer(n);
  out_ += 't';
}

// Of the two kinds only an OrderedDict may have attributes.
void PickleWriter::write_dict(const PickleDict& dict) {
  if (dict.ordered || !dict.attributes.empty()) {
    global("collections OrderedDict");
    out_ += ")R";
  } else {
    out_ += '}';
  }
  write_items(dict.items);
  if (!dict.attributes.empty()) {
    out_ += '}';
    write_items(dict.attributes);
    out_ += 'b';
  }
}

void PickleWriter::write_items(const std::vector<PickleItem>& items) {
  out_ += '(';
  for (const PickleItem& item : items) {
    write_key(item.key);
    write(item.value);
  }
  out_ += 'u';
}

void PickleWriter::write_object(const PickleObject& object) {
  const size_t dot = object.name.rfind('.');
  if (dot == std::string::npos || object.name.find_first_of(" \n") != std::string::npos ||
      !object.name.starts_with("torch.")) {
    throw_error<ValueError>(kOp, ": the object cannot be stored; got '", printable(object.name),
                            "'; expected a name of torch such as 'torch.device'");
  }
  global(object.name.substr(0, dot) + " " + object.name.substr(dot + 1));
  if (object.arguments.empty()) return;
  write_tuple(object.arguments);
  out_ += 'R';
}

// Protocol 2 has no bytes: they travel as the text that they are in Latin-1.
void PickleWriter::write_bytes(const std::string& bytes) {
  global("_codecs encode");
  std::string utf8;
  for (const char c : bytes) {
    const auto b = static_cast<uint8_t>(c);
    if (b < 0x80) {
      utf8 += c;
    } else {
      utf8 += static_cast<char>(0xc0 | b >> 6);
      utf8 += static_cast<char>(0x80 | (b & 0x3f));
    }
  }
  text(utf8);
  text("latin1");
  out_ += "\x86R";
}

// An integer beyond 64 bits: LONG1 or LONG4, two's complement.
void PickleWriter::write_decimal(const std::string& decimal) {
  const bool negative = decimal.starts_with('-');
  std::vector<uint8_t> bytes{0};
  for (const char c : decimal) {
    if (c == '-') continue;
    unsigned carry = static_cast<unsigned>(c - '0');
    for (uint8_t& b : bytes) {
      carry += b * 10u;
      b = static_cast<uint8_t>(carry);
      carry >>= 8;
    }
    if (carry > 0) bytes.push_back(static_cast<uint8_t>(carry));
  }
  bytes.push_back(0);  // room for the sign
  if (negative) {
    unsigned carry = 1;
    for (uint8_t& b : bytes) {
      carry += static_cast<uint8_t>(~b);
      b = static_cast<uint8_t>(carry);
      carry >>= 8;
    }
  }
  out_ += bytes.size() < 256 ? '\x8a' : '\x8b';
  number(bytes.size(), bytes.size() < 256 ? 1 : 4);
  out_.append(bytes.begin(), bytes.end());
}

// _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks)
void PickleWriter::write_tensor(const Tensor& x) {
  const View& view = views_[next_view_++];
  const SavedStorage& saved = storages_[view.storage];
  const auto element = static_cast<int64_t>(size_of(saved.dtype));
  global("torch._utils _rebuild_tensor_v2");
  out_ += "((";
  text("storage");
  global(storage_name(saved.dtype));
  text(std::to_string(view.storage));
  text("cpu");
  integer(static_cast<int64_t>(saved.end - saved.begin) / element);
  out_ += "tQ";
  integer(x.numel() == 0 ? 0 : view.offset - static_cast<int64_t>(saved.begin) / element);
  write_shape(x.shape());
  write_shape(view.stride);
  out_ += x.requires_grad() && x.is_leaf() ? '\x88' : '\x89';
  global("collections OrderedDict");
  out_ += ")RtR";
}

}  // namespace kiln::io::detail
