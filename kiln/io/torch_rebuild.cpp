// What the names of a PyTorch file make, beside plain tensors: parameters, containers, numbers.
#include <cstring>

#include "kiln/core/error.h"
#include "kiln/core/half.h"
#include "kiln/io/torch_names.h"
#include "kiln/io/torch_objects.h"

namespace kiln::io::detail {

namespace {

const StoredTensorInfo* tensor_at(const PickleArena& arena, NodeRef ref) {
  const auto* tensor = arena.get<std::unique_ptr<StoredTensorInfo>>(ref);
  return tensor == nullptr ? nullptr : tensor->get();
}

// The bytes that `text` stands for in Latin-1; false when it has other characters.
bool latin1_of(const std::string& text, std::string* out) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<uint8_t>(text[i]);
    if (c < 0x80) {
      *out += text[i];
    } else if ((c == 0xc2 || c == 0xc3) && i + 1 < text.size()) {
      *out += static_cast<char>((c & 3) << 6 | (static_cast<uint8_t>(text[++i]) & 0x3f));
    } else {
      return false;
    }
  }
  return true;
}

// The number that `bytes` hold as NumPy's type `code` ("f8", "i4", "b1").
bool numpy_number(const std::string& code, bool big_endian, std::string bytes, Node* out) {
  if (big_endian) bytes = std::string(bytes.rbegin(), bytes.rend());
  const auto as = [&]<class T>(T) {
    T value{};
    if (bytes.size() != sizeof value) return false;
    std::memcpy(&value, bytes.data(), sizeof value);
    if constexpr (std::is_integral_v<T>) {
      *out = static_cast<int64_t>(value);
    } else if constexpr (std::is_same_v<T, double>) {
      *out = value;
    } else {
      *out = static_cast<double>(static_cast<float>(value));
    }
    return true;
  };
  if (code == "f8") return as(double());
  if (code == "f4") return as(float());
  if (code == "f2") return as(float16());
  if (code == "i8") return as(int64_t());
  if (code == "i4") return as(int32_t());
  if (code == "i2") return as(int16_t());
  if (code == "i1") return as(int8_t());
  if (code == "u1") return as(uint8_t());
  if (code == "u2") return as(uint16_t());
  if (code == "u4") return as(uint32_t());
  if (code == "b1" && bytes.size() == 1) {
    *out = bytes[0] != 0;
    return true;
  }
  return false;
}

// The references of another object: a short pickle may copy a long list again and again.
std::vector<NodeRef> copied(PickleArena& arena, const std::vector<NodeRef>& items) {
  arena.charge(items.size() * sizeof(NodeRef));
  return items;
}

}  // namespace

NodeRef TorchObjects::rebuild_parameter(PickleArena& arena, const std::vector<NodeRef>& arguments) {
  const auto* data = arguments.empty() ? nullptr : tensor_at(arena, arguments[0]);
  if (data == nullptr) {
    malformed("a parameter has no tensor",
              arguments.empty() ? "nothing" : describe(arena, arguments[0]), "a tensor");
  }
  auto out = std::make_unique<StoredTensorInfo>(*data);
  out->is_parameter = true;
  const auto* wants = arguments.size() > 1 ? arena.get<bool>(arguments[1]) : nullptr;
  if (wants != nullptr) out->requires_grad = *wants;
  return arena.add(std::move(out), sizeof(StoredTensorInfo));
}

// A subclass of Tensor: (function, class, arguments, state).
NodeRef TorchObjects::rebuild_typed(PickleArena& arena, const std::vector<NodeRef>& arguments) {
  const auto* function = arguments.size() < 3 ? nullptr : arena.get<GlobalNode>(arguments[0]);
  const auto* inner = function == nullptr ? nullptr : arena.get<TupleNode>(arguments[2]);
  if (inner == nullptr || inner->items.size() > 16 ||
      !function->name.starts_with("torch._utils._rebuild_")) {
    malformed("a tensor of a class is not described as PyTorch does it",
              concat(arguments.size(), " arguments"), "function, class, arguments and state");
  }
  return reduce(arena, std::string(function->name), std::vector<NodeRef>(inner->items));
}

NodeRef TorchObjects::rebuild_unsupported(PickleArena& arena, const std::vector<NodeRef>& arguments,
                                          const std::string& function) {
  if (function == "torch._utils._rebuild_qtensor") return rebuild_tensor(arena, arguments, 1);
  auto out = std::make_unique<StoredTensorInfo>();
  const bool is_meta = function == "torch._utils._rebuild_meta_tensor_no_storage";
  out->type_name = is_meta                                        ? "meta"
                   : function.find("nested") != std::string::npos ? "nested"
                                                                  : "sparse";
  out->refusal = is_meta ? "a tensor on the meta device has no values"
                         : concat("Kiln has no ", out->type_name, " tensors");
  // The size stands among the arguments, or in the tuple that is the second of them.
  const std::vector<NodeRef>* size = nullptr;
  if (is_meta && arguments.size() > 1) {
    size = arena.sequence(arguments[1]);
  } else if (arguments.size() > 1) {
    const auto* data = arena.sequence(arguments[1]);
    if (data != nullptr && data->size() > 2) size = arena.sequence((*data)[2]);
  }
  for (size_t i = 0; size != nullptr && i < size->size() && i < size_t{kMaxRank}; ++i) {
    const auto* n = arena.get<int64_t>((*size)[i]);
    if (n != nullptr && *n >= 0) out->shape.push_back(*n);
  }
  out->stride = Shape::filled(out->shape.rank(), 0);
  if (out->type_name == "sparse" && arguments.size() == 2) {
    out->refusal = "Kiln reads sparse tensors in Python alone";
    parts_.emplace(out.get(), copied(arena, arguments));
  }
  return arena.add(std::move(out), sizeof(StoredTensorInfo));
}

NodeRef TorchObjects::reduce_container(PickleArena& arena, const std::string& function,
                                       const std::vector<NodeRef>& arguments) {
  if (function == "builtins.set" || function == "builtins.frozenset") {
    const auto* items = arguments.size() != 1 ? nullptr : arena.sequence(arguments[0]);
    if (items == nullptr && !arguments.empty()) {
      malformed("a set is made of what is no list", describe(arena, arguments[0]), "a list");
    }
    SetNode set;
    set.frozen = function == "builtins.frozenset";
    if (items != nullptr) set.items = copied(arena, *items);
    return arena.add(std::move(set));
  }
  DictNode out;
  out.ordered = function == "collections.OrderedDict";
  const size_t from = function == "collections.defaultdict" ? 1 : 0;
  if (arguments.size() > from) {
    if (const auto* dict = arena.get<DictNode>(arguments[from])) {
      arena.grow(out.items, dict->items.size());
      out.items = dict->items;
    } else if (const auto* pairs = arena.sequence(arguments[from])) {
      arena.grow(out.items, pairs->size());
      for (const NodeRef pair : *pairs) {
        const auto* items = arena.sequence(pair);
        if (items == nullptr || items->size() != 2) {
          malformed("a dict is made of what are no pairs", describe(arena, pair), "pairs");
        }
        out.items.emplace_back((*items)[0], (*items)[1]);
      }
    } else {
      malformed("a dict is made of what is no list", describe(arena, arguments[from]), "pairs");
    }
  }
  return arena.add(std::move(out));
}

NodeRef TorchObjects::reduce_plain(PickleArena& arena, const std::string& function,
                                   const std::vector<NodeRef>& arguments) {
  const auto text = [&](size_t i) {
    return i < arguments.size() ? arena.get<std::string>(arguments[i]) : nullptr;
  };
  const auto* items = arguments.size() == 1 ? arena.sequence(arguments[0]) : nullptr;
  if (function == "torch.Size" && items != nullptr) {
    for (const NodeRef item : *items) {
      if (arena.get<int64_t>(item) == nullptr) {
        malformed("a size has what is no number", describe(arena, item), "whole numbers");
      }
    }
    return arena.add(TupleNode{copied(arena, *items)});
  }
  if (function == "torch.device") {
    // A type and perhaps a number: ("cuda", 0), or ("cuda:0").
    const bool numbered = arguments.size() == 2 && arena.get<int64_t>(arguments[1]) != nullptr;
    if (text(0) != nullptr && text(0)->size() < 100 && (arguments.size() == 1 || numbered)) {
      return arena.add(ObjectNode{function, arguments});
    }
  }
  if (function == "numpy.dtype" || function == "torch.serialization._get_layout") {
    return arena.add(ObjectNode{function, arguments});
  }
  if (function == "_codecs.encode" && text(0) != nullptr && text(1) != nullptr) {
    PickleBytes bytes;
    arena.charge(text(0)->size());
    bytes.bytes.reserve(text(0)->size());
    if (*text(1) == "latin1" && latin1_of(*text(0), &bytes.bytes)) {
      return arena.add(std::move(bytes));
    }
  }
  if (function == "builtins.bytearray" || function == "builtins.bytes") {
    const auto* bytes = arguments.size() == 1 ? arena.get<PickleBytes>(arguments[0]) : nullptr;
    if (arguments.empty()) return arena.add(PickleBytes{});
    if (bytes != nullptr) {
      arena.charge(bytes->bytes.size());
      return arena.add(PickleBytes{*bytes});
    }
  }
  if (function == "builtins.complex" && arguments.size() == 2) {
    const auto* re = arena.get<double>(arguments[0]);
    const auto* im = arena.get<double>(arguments[1]);
    if (re != nullptr && im != nullptr) return arena.add(std::complex<double>(*re, *im));
  }
  if (function.ends_with("multiarray.scalar") && arguments.size() == 2) {
    const ObjectNode* dtype = arena.object(arguments[0]);
    const auto* bytes = arena.get<PickleBytes>(arguments[1]);
    const auto* code = dtype == nullptr || dtype->arguments.empty()
                           ? nullptr
                           : arena.get<std::string>(dtype->arguments[0]);
    Node number;
    if (bytes != nullptr && code != nullptr &&
        numpy_number(*code, dtype->name == "numpy.dtype>", bytes->bytes, &number)) {
      return arena.add(std::move(number));
    }
  }
  malformed(concat("'", function, "' is given what it does not take"),
            arguments.empty() ? "nothing" : describe(arena, arguments[0]),
            "what PyTorch writes there");
}

bool TorchObjects::build(PickleArena& arena, NodeRef target, NodeRef state) const {
  // Attributes set on a tensor or parameter carry no values.
  if (tensor_at(arena, target) != nullptr) return arena.get<DictNode>(state) != nullptr;
  // A NumPy dtype is told its byte order: (3, '<', None, ...).
  ObjectNode* object = arena.object(target);
  const auto* items = arena.sequence(state);
  if (object == nullptr || !object->name.starts_with("numpy.dtype") || items == nullptr ||
      items->size() < 2) {
    return false;
  }
  const auto* order = arena.get<std::string>((*items)[1]);
  object->name = order != nullptr && *order == ">" ? "numpy.dtype>" : "numpy.dtype";
  return true;
}

}  // namespace kiln::io::detail
