// Snapshot: a copy of everything that a checkpoint holds, while training goes on with the
// originals.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kiln/core/storage.h"
#include "kiln/io/pickle_value.h"

namespace kiln::train {

// Memory for copies is kept from one copy to the next: fresh memory costs several times what
// copying into old memory does.
class Snapshot {
 public:
  // The same tree with tensors of its own. The copy before this one must not be in use any more.
  io::PickleValue copy(const io::PickleValue& value);

  // The same in two steps: the tree at once, with memory that finish() fills. What is no contiguous
  // host memory is copied at once.
  io::PickleValue begin(const io::PickleValue& value);
  // Copies what is left; several threads may call it, and share the work. Returns when all of it is
  // copied.
  void finish();
  // Whether nothing has written into the originals since begin(), also through `data` and detached
  // tensors.
  bool is_exact() const;
  // Forgets the originals.
  void release() { originals_.clear(); }

 private:
  struct Piece {
    const char* from;
    char* to;
    size_t bytes;
  };
  struct Original {
    Handle<Storage> owner;
    uint32_t writes;
  };

  io::PickleValue copied(const io::PickleValue& value);
  std::vector<io::PickleItem> copied(const std::vector<io::PickleItem>& items);
  std::vector<io::PickleValue> copied(const std::vector<io::PickleValue>& items);
  Tensor copied(const Tensor& tensor);

  std::vector<Tensor> buffers_;  // in the order of the tree
  size_t next_ = 0;
  std::vector<Original> originals_;
  std::vector<Piece> pieces_;
  std::atomic<size_t> taken_{0};
  std::atomic<size_t> done_{0};
};

namespace detail {

// Tests set a function that is called before each piece of memory is copied.
extern std::atomic<void (*)()> before_piece;

}  // namespace detail

}  // namespace kiln::train
