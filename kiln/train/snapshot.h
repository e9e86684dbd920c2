// Snapshot: a copy of everything that a checkpoint holds, while training goes on with the
// originals.
#pragma once

#include <cstddef>
#include <vector>

#include "kiln/io/pickle_value.h"

namespace kiln::train {

// Memory for copies is kept from one copy to the next: fresh memory costs several times what
// copying into old memory does.
class Snapshot {
 public:
  // The same tree with tensors of its own. The copy before this one must not be in use any more.
  io::PickleValue copy(const io::PickleValue& value);

 private:
  io::PickleValue copied(const io::PickleValue& value);
  std::vector<io::PickleItem> copied(const std::vector<io::PickleItem>& items);
  std::vector<io::PickleValue> copied(const std::vector<io::PickleValue>& items);
  Tensor copied(const Tensor& tensor);

  std::vector<Tensor> buffers_;  // in the order of the tree
  size_t next_ = 0;
};

}  // namespace kiln::train
