#include "kiln/train/snapshot.h"

#include <type_traits>

#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"

namespace kiln::train {

io::PickleValue Snapshot::copy(const io::PickleValue& value) {
  const NoGradGuard no_grad;
  next_ = 0;
  io::PickleValue out = copied(value);
  buffers_.resize(next_);
  return out;
}

Tensor Snapshot::copied(const Tensor& tensor) {
  const size_t at = next_++;
  if (at == buffers_.size()) buffers_.emplace_back();
  Tensor& buffer = buffers_[at];
  if (!buffer.defined() || buffer.shape() != tensor.shape() || buffer.dtype() != tensor.dtype()) {
    buffer = empty(tensor.shape(), {tensor.dtype(), Device("cpu")});
  }
  buffer.copy_(tensor);
  return buffer;
}

std::vector<io::PickleItem> Snapshot::copied(const std::vector<io::PickleItem>& items) {
  std::vector<io::PickleItem> out;
  out.reserve(items.size());
  for (const io::PickleItem& item : items) out.push_back({copied(item.key), copied(item.value)});
  return out;
}

std::vector<io::PickleValue> Snapshot::copied(const std::vector<io::PickleValue>& items) {
  std::vector<io::PickleValue> out;
  out.reserve(items.size());
  for (const io::PickleValue& item : items) out.push_back(copied(item));
  return out;
}

io::PickleValue Snapshot::copied(const io::PickleValue& value) {
  return value.visit([&]<class T>(const T& held) -> io::PickleValue {
    if constexpr (std::is_same_v<T, std::monostate>) {
      return {};
    } else if constexpr (std::is_same_v<T, Tensor>) {
      return copied(held);
    } else if constexpr (std::is_same_v<T, io::PickleList>) {
      return copied(held);
    } else if constexpr (std::is_same_v<T, io::PickleTuple>) {
      return io::PickleTuple{copied(held.items)};
    } else if constexpr (std::is_same_v<T, io::PickleDict>) {
      return io::PickleDict{copied(held.items), copied(held.attributes)};
    } else {
      return held;
    }
  });
}

}  // namespace kiln::train
