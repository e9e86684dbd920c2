#include "kiln/io/torch_objects.h"

#include <algorithm>
#include <limits>

#include "kiln/core/error.h"
#include "kiln/io/torch_names.h"

namespace kiln::io::detail {

namespace {

// Views may repeat elements (torch.expand), but not turn a small file into tensors that fill the
// memory of whoever copies them: the most bytes of all tensors beyond those of their storages.
constexpr int64_t kMostRepeated = int64_t{64} << 20;
// What an entry of the list of storages holds beside its key.
constexpr uint64_t kStorage = 256;

}  // namespace

void TorchObjects::malformed(const std::string& what, const std::string& got,
                             const std::string& expected) const {
  throw_error<IoError>(file_.op(), ": '", file_.path(), "' is malformed: ", what, "; got ", got,
                       "; expected ", expected);
}

NodeRef TorchObjects::global(PickleArena& arena, const std::string& module,
                             const std::string& name) const {
  const std::string full = canonical_name(module, name);
  if (!is_known_name(full)) {
    const bool whole = module.starts_with("torch.nn.modules") || module == "__main__";
    throw_error<IoError>(
        file_.op(), ": '", file_.path(),
        "' is refused: its pickle names something that is no tensor or plain value; got '",
        printable(module + "." + name), "'; expected ",
        whole ? "a state dict (in PyTorch: torch.save(model.state_dict(), path))"
              : "tensors, containers and plain values (nothing from a file is ever run)");
  }
  return arena.add(GlobalNode{full}, full.size());
}

NodeRef TorchObjects::persistent(PickleArena& arena, NodeRef id) {
  const auto* items = arena.sequence(id);
  const auto part = [&](size_t i) -> NodeRef { return i < items->size() ? (*items)[i] : 0; };
  const auto* tag = items == nullptr ? nullptr : arena.get<std::string>(part(0));
  if (tag != nullptr && *tag == "module") {
    throw_error<IoError>(file_.op(), ": '", file_.path(),
                         "' is refused: it holds a whole module with its source; got the class ",
                         describe(arena, part(1)),
                         "; expected a state dict (in PyTorch: "
                         "torch.save(model.state_dict(), path))");
  }
  const auto* global = tag == nullptr ? nullptr : arena.get<GlobalNode>(part(1));
  const StorageType* type = global == nullptr ? nullptr : storage_type(global->name);
  const auto* key = tag == nullptr ? nullptr : arena.get<std::string>(part(2));
  const auto* elements = tag == nullptr ? nullptr : arena.get<int64_t>(part(4));
  if (tag == nullptr || *tag != "storage" || type == nullptr || key == nullptr ||
      elements == nullptr || items->size() < 5 || items->size() > 6) {
    malformed("a storage is not described as PyTorch does it", describe(arena, id),
              "('storage', class, key, location, elements)");
  }
  int64_t bytes = 0;
  if (*elements < 0 ||
      __builtin_mul_overflow(*elements, static_cast<int64_t>(type->element), &bytes)) {
    malformed(concat("storage '", printable(*key), "' has an impossible size"), concat(*elements),
              "a number of elements");
  }
  const auto [found, is_new] = index_.try_emplace(*key, static_cast<uint32_t>(storages_.size()));
  if (is_new) {
    const auto* location = arena.get<std::string>(part(3));
    std::string where = location != nullptr && location->size() < 100 ? *location : "cpu";
    arena.charge(kStorage + 2 * key->size());
    storages_.push_back({*key, type, bytes, std::move(where)});
  } else if (storages_[found->second].bytes != bytes) {
    malformed(concat("storage '", printable(*key), "' has two sizes"), concat(bytes, " bytes"),
              concat(storages_[found->second].bytes));
  }
  StorageNode out{found->second, 0, bytes, type};
  if (part(5) != arena.none()) {
    // Files of PyTorch 0.x: (key of the view, offset, elements).
    const auto* view = arena.sequence(part(5));
    const auto* offset =
        view == nullptr || view->size() != 3 ? nullptr : arena.get<int64_t>((*view)[1]);
    const auto* count = offset == nullptr ? nullptr : arena.get<int64_t>((*view)[2]);
    if (count == nullptr || *offset < 0 || *count < 0 || *offset > *elements ||
        *count > *elements - *offset) {
      malformed(concat("a view of storage '", printable(*key), "' lies outside it"),
                describe(arena, part(5)), concat("a part of ", *elements, " elements"));
    }
    out.offset = *offset * static_cast<int64_t>(type->element);
    out.bytes = *count * static_cast<int64_t>(type->element);
  }
  return arena.add(out);
}

StoredTensor TorchObjects::whole_storage(const StorageNode& storage) const {
  auto out = std::make_shared<StoredTensorInfo>();
  const auto element = static_cast<int64_t>(storage.type->element);
  out->storage = storage.storage;
  out->dtype = storage.type->dtype;
  out->shape = {storage.bytes / element};
  out->stride = {1};
  out->offset = storage.offset / element;
  out->type_name = storage.type->dtype_name;
  if (storage.type->refusal != nullptr) out->refusal = storage.type->refusal;
  return out;
}

NodeRef TorchObjects::reduce(PickleArena& arena, const std::string& function,
                             const std::vector<NodeRef>& arguments) {
  const auto is = [&](const char* name) { return function == std::string("torch._utils.") + name; };
  if (is("_rebuild_tensor")) return rebuild_tensor(arena, arguments, 1);
  if (is("_rebuild_tensor_v2")) return rebuild_tensor(arena, arguments, 2);
  if (is("_rebuild_tensor_v3")) return rebuild_tensor(arena, arguments, 3);
  if (is("_rebuild_parameter") || is("_rebuild_parameter_with_state")) {
    return rebuild_parameter(arena, arguments);
  }
  if (function == "torch._tensor._rebuild_from_type_v2") return rebuild_typed(arena, arguments);
  if (function.starts_with("torch._utils.")) {
    return rebuild_unsupported(arena, arguments, function);
  }
  if (function.starts_with("collections.") || function == "builtins.set" ||
      function == "builtins.frozenset") {
    return reduce_container(arena, function, arguments);
  }
  return reduce_plain(arena, function, arguments);
}

// (storage, offset, size, stride[, requires_grad, hooks[, dtype of v3][, metadata]])
NodeRef TorchObjects::rebuild_tensor(PickleArena& arena, const std::vector<NodeRef>& arguments,
                                     int version) {
  const auto at = [&](size_t i) -> NodeRef { return i < arguments.size() ? arguments[i] : 0; };
  const auto* storage = arena.get<StorageNode>(at(0));
  const auto* offset = arena.get<int64_t>(at(1));
  const auto* size = arena.sequence(at(2));
  const auto* stride = arena.sequence(at(3));
  if (storage == nullptr || offset == nullptr || size == nullptr || stride == nullptr) {
    malformed("a tensor is not described as PyTorch does it",
              concat(arguments.size(), " arguments, the first ", describe(arena, at(0))),
              "storage, offset, size and stride");
  }
  auto out = std::make_unique<StoredTensorInfo>();
  const StorageType* type = storage->type;
  if (version == 3) {
    const auto* dtype = arena.get<GlobalNode>(at(6));
    type = dtype == nullptr ? nullptr : dtype_type(dtype->name);
    if (type == nullptr) malformed("a tensor has no dtype", describe(arena, at(6)), "a dtype");
  }
  if (size->size() != stride->size() || size->size() > static_cast<size_t>(kMaxRank)) {
    malformed("a tensor has sizes and strides of wrong number",
              concat(size->size(), " and ", stride->size()),
              concat("as many of both, at most ", kMaxRank));
  }
  for (size_t i = 0; i < size->size(); ++i) {
    const auto* n = arena.get<int64_t>((*size)[i]);
    const auto* step = arena.get<int64_t>((*stride)[i]);
    if (n == nullptr || step == nullptr || *n < 0 || *step < 0) {
      malformed("a tensor has a size or stride that cannot be",
                concat(describe(arena, (*size)[i]), " and ", describe(arena, (*stride)[i])),
                "numbers from 0 on");
    }
    out->shape.push_back(*n);
    out->stride.push_back(*step);
  }
  out->storage = storage->storage;
  out->dtype = type->dtype;
  out->type_name = type->dtype_name;
  if (type->refusal != nullptr) out->refusal = type->refusal;
  out->offset = *offset;
  check_view(*out, *storage, type->element);
  out->offset += storage->offset / static_cast<int64_t>(type->element);
  if (version >= 2) {
    const auto* wants = arena.get<bool>(at(4));
    out->requires_grad = wants != nullptr && *wants;
  }
  // The last argument may say that the values are conjugated or negated.
  const auto* metadata = arena.get<DictNode>(at(version == 3 ? 7 : 6));
  if (metadata != nullptr && !metadata->items.empty()) {
    out->refusal = "Kiln does not read tensors with a pending conjugation or negation";
  }
  return arena.add(std::move(out), sizeof(StoredTensorInfo));
}

void TorchObjects::check_view(const StoredTensorInfo& tensor, const StorageNode& storage,
                              size_t element) {
  const int64_t held = storage.bytes / static_cast<int64_t>(element);
  const auto fail = [&](const char* what) {
    malformed(
        concat("a tensor over storage '", printable(storages_[storage.storage].key), "' ", what),
        concat("shape ", tensor.shape, ", stride ", tensor.stride, ", offset ", tensor.offset),
        concat("elements among the ", held, " that there are"));
  };
  int64_t end = tensor.offset;
  bool empty = false;
  int64_t bytes = static_cast<int64_t>(element);
  for (int i = 0; i < tensor.shape.rank(); ++i) {
    const int64_t n = tensor.shape[i];
    empty = empty || n == 0;
    int64_t reach = 0;
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(n, 1), &bytes) ||
        __builtin_mul_overflow(std::max<int64_t>(n, 1) - 1, tensor.stride[i], &reach) ||
        __builtin_add_overflow(end, reach, &end)) {
      fail("has a size that overflows");
    }
  }
  if (tensor.offset < 0 || (empty ? tensor.offset > held : end >= held)) {
    fail("reaches outside it");
  }
  if (!empty && bytes > storage.bytes) {
    const int64_t more = bytes - storage.bytes;
    if (more > kMostRepeated - repeated_) fail("repeats its elements too often");
    repeated_ += more;
  }
}

}  // namespace kiln::io::detail
