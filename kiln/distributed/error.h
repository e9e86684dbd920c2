// What goes wrong between processes. The names are PyTorch's.
#pragma once

#include "kiln/core/error.h"

namespace kiln::distributed {

class DistError : public RuntimeError {
 public:
  using RuntimeError::RuntimeError;
};

// An operation of a group of processes: one of them ended, did something else, or came too late.
class DistBackendError final : public DistError {
 public:
  using DistError::DistError;
};

// A connection that could not be made, or broke.
class DistNetworkError final : public DistError {
 public:
  using DistError::DistError;
};

// A store: a key that did not come in time, a server that is gone, a damaged file.
class DistStoreError final : public DistError {
 public:
  using DistError::DistError;
};

}  // namespace kiln::distributed
