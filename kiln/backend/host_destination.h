// Where a backend over HostTensor puts a result: into memory that is there already.
#pragma once

#include "kiln/backend/host_tensor.h"

namespace kiln::host {

// While it lives, the first result of x's shape, dtype and device that this thread makes by
// host::empty is x itself. x is row-major, and nobody reads it meanwhile. A row may still give
// other memory than x: whoever calls it compares.
class Destination {
 public:
  explicit Destination(HostTensor* x);
  ~Destination();
  Destination(const Destination&) = delete;
  Destination& operator=(const Destination&) = delete;

 private:
  HostTensor* before_;
};

}  // namespace kiln::host
