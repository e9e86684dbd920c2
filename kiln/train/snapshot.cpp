#include "kiln/train/snapshot.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/interop.h"

namespace kiln::train {

namespace {

// What one thread takes at a time.
constexpr size_t kPiece = size_t{8} << 20;

}  // namespace

std::atomic<void (*)()> detail::before_piece{nullptr};

io::PickleValue Snapshot::copy(const io::PickleValue& value) {
  io::PickleValue out = begin(value);
  finish();
  return out;
}

io::PickleValue Snapshot::begin(const io::PickleValue& value) {
  const NoGradGuard no_grad;
  next_ = 0;
  originals_.clear();
  pieces_.clear();
  io::PickleValue out = copied(value);
  buffers_.resize(next_);
  taken_.store(0, std::memory_order_relaxed);
  done_.store(0, std::memory_order_release);
  return out;
}

void Snapshot::finish() {
  for (;;) {
    const size_t i = taken_.fetch_add(1, std::memory_order_relaxed);
    if (i >= pieces_.size()) break;
    if (const auto hook = detail::before_piece.load(std::memory_order_relaxed)) hook();
    std::memcpy(pieces_[i].to, pieces_[i].from, pieces_[i].bytes);
    done_.fetch_add(1, std::memory_order_release);
    done_.notify_all();
  }
  for (size_t done; (done = done_.load(std::memory_order_acquire)) < pieces_.size();) {
    done_.wait(done, std::memory_order_acquire);
  }
}

bool Snapshot::is_exact() const {
  return std::all_of(originals_.begin(), originals_.end(),
                     [](const Original& o) { return o.owner->writes() == o.writes; });
}

Tensor Snapshot::copied(const Tensor& tensor) {
  const size_t at = next_++;
  if (at == buffers_.size()) buffers_.emplace_back();
  Tensor& buffer = buffers_[at];
  if (!buffer.defined() || buffer.shape() != tensor.shape() || buffer.dtype() != tensor.dtype()) {
    buffer = empty(tensor.shape(), {tensor.dtype(), Device("cpu")});
  }
  if (tensor.device() != Device("cpu") || tensor.is_complex() || !tensor.is_contiguous()) {
    buffer.copy_(tensor);
    return buffer;
  }
  const interop::Memory from = interop::memory("CheckpointStore", tensor);
  originals_.push_back({from.owner, from.owner->writes()});
  const size_t bytes = static_cast<size_t>(tensor.numel()) * size_of(from.dtype);
  const auto* source = static_cast<const char*>(from.data);
  auto* target = static_cast<char*>(interop::data(buffer));
  for (size_t begin = 0; begin < bytes; begin += kPiece) {
    pieces_.push_back({source + begin, target + begin, std::min(kPiece, bytes - begin)});
  }
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
      return io::PickleDict{copied(held.items), copied(held.attributes), held.ordered};
    } else if constexpr (std::is_same_v<T, io::PickleObject>) {
      return io::PickleObject{held.name, copied(held.arguments)};
    } else {
      return held;
    }
  });
}

}  // namespace kiln::train
