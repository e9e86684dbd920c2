#include "kiln/io/torch_names.h"

#include <algorithm>

namespace kiln::io::detail {

namespace {

constexpr const char* kQuantized =
    "Kiln does not read PyTorch's quantized tensors; dequantize() them before saving";
constexpr const char* kNoDType = "Kiln has no such dtype";

constexpr StorageType kStorages[] = {
    {"FloatStorage", "float32", DType::f32, 4, nullptr},
    {"DoubleStorage", "float64", DType::f64, 8, nullptr},
    {"HalfStorage", "float16", DType::f16, 2, nullptr},
    {"BFloat16Storage", "bfloat16", DType::bf16, 2, nullptr},
    {"LongStorage", "int64", DType::i64, 8, nullptr},
    {"IntStorage", "int32", DType::i32, 4, nullptr},
    {"ShortStorage", "int16", DType::i16, 2, nullptr},
    {"CharStorage", "int8", DType::i8, 1, nullptr},
    {"ByteStorage", "uint8", DType::u8, 1, nullptr},
    {"BoolStorage", "bool", DType::boolean, 1, nullptr},
    {"UntypedStorage", "uint8", DType::u8, 1, nullptr},
    {"ComplexFloatStorage", "complex64", DType::c64, 8, nullptr},
    {"ComplexDoubleStorage", "complex128", DType::c128, 16, nullptr},
    {"QInt8Storage", "qint8", DType::f32, 1, kQuantized},
    {"QUInt8Storage", "quint8", DType::f32, 1, kQuantized},
    {"QInt32Storage", "qint32", DType::f32, 4, kQuantized},
    {"QUInt4x2Storage", "quint4x2", DType::f32, 1, kQuantized},
    {"QUInt2x4Storage", "quint2x4", DType::f32, 1, kQuantized},
};

// dtypes that have no storage class of their own; their tensors lie in an UntypedStorage.
constexpr StorageType kOtherDTypes[] = {
    {"", "uint16", DType::f32, 2, kNoDType},
    {"", "uint32", DType::f32, 4, kNoDType},
    {"", "uint64", DType::f32, 8, kNoDType},
    {"", "complex32", DType::f32, 4, kNoDType},
    {"", "float8_e4m3fn", DType::f32, 1, kNoDType},
    {"", "float8_e4m3fnuz", DType::f32, 1, kNoDType},
    {"", "float8_e5m2", DType::f32, 1, kNoDType},
    {"", "float8_e5m2fnuz", DType::f32, 1, kNoDType},
    {"", "float8_e8m0fnu", DType::f32, 1, kNoDType},
    {"", "float4_e2m1fn_x2", DType::f32, 1, kNoDType},
};

constexpr std::string_view kTorchNames[] = {
    // containers and plain values
    "collections.OrderedDict",
    "collections.Counter",
    "collections.defaultdict",
    "builtins.set",
    "builtins.frozenset",
    "builtins.bytearray",
    "builtins.bytes",
    "builtins.complex",
    "builtins.int",
    "builtins.float",
    "builtins.bool",
    "builtins.str",
    "builtins.list",
    "builtins.dict",
    "builtins.tuple",
    "_codecs.encode",
    "torch.Size",
    "torch.device",
    // numbers of NumPy
    "numpy.dtype",
    "numpy.core.multiarray.scalar",
    "numpy._core.multiarray.scalar",
    // tensors
    "torch._utils._rebuild_tensor",
    "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_tensor_v3",
    "torch._utils._rebuild_parameter",
    "torch._utils._rebuild_parameter_with_state",
    "torch._tensor._rebuild_from_type_v2",
    "torch.Tensor",
    "torch.nn.parameter.Parameter",
    "torch.nn.parameter.Buffer",
    // tensors that Kiln can name but not read
    "torch._utils._rebuild_qtensor",
    "torch._utils._rebuild_sparse_tensor",
    "torch._utils._rebuild_sparse_csr_tensor",
    "torch._utils._rebuild_nested_tensor",
    "torch._utils._rebuild_meta_tensor_no_storage",
    "torch.per_tensor_affine",
    "torch.per_channel_affine",
    "torch.per_channel_affine_float_qparams",
    "torch.per_tensor_symmetric",
    "torch.per_channel_symmetric",
    "torch.strided",
    "torch.sparse_coo",
    "torch.sparse_csr",
    "torch.sparse_csc",
    "torch.sparse_bsr",
    "torch.sparse_bsc",
    "torch.serialization._get_layout",
};

}  // namespace

const StorageType* storage_type(std::string_view global) {
  if (!global.starts_with("torch.")) return nullptr;
  global.remove_prefix(6);
  const auto* found = std::find_if(std::begin(kStorages), std::end(kStorages),
                                   [&](const StorageType& t) { return global == t.name; });
  return found == std::end(kStorages) ? nullptr : found;
}

const StorageType* dtype_type(std::string_view global) {
  if (!global.starts_with("torch.")) return nullptr;
  global.remove_prefix(6);
  for (const StorageType& t : kStorages) {
    if (global == t.dtype_name) return &t;
  }
  for (const StorageType& t : kOtherDTypes) {
    if (global == t.dtype_name) return &t;
  }
  return nullptr;
}

bool is_known_name(std::string_view global) {
  return std::find(std::begin(kTorchNames), std::end(kTorchNames), global) !=
             std::end(kTorchNames) ||
         storage_type(global) != nullptr || dtype_type(global) != nullptr;
}

std::string canonical_name(const std::string& module, const std::string& name) {
  if (module == "__builtin__") return "builtins." + name;
  if ((module == "torch.cuda" || module == "torch.storage") && name.ends_with("Storage")) {
    return "torch." + name;
  }
  return module + "." + name;
}

}  // namespace kiln::io::detail
