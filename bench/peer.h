// The module that runs the peer's half of the rows.
#pragma once

#include <memory>
#include <string>

#include "bench/peer_api.h"
#include "bench/workload.h"

namespace kiln::bench {

class Peer {
 public:
  // Loads the module. Throws std::runtime_error that says why it cannot.
  explicit Peer(const std::string& path);

  std::string name() const { return api_->name; }
  void set_num_threads(int n) const { api_->set_num_threads(n); }
  // The peer's half of a row; null when it has none. Throws std::runtime_error when making it
  // fails.
  std::unique_ptr<Workload> make(const std::string& row) const;

 private:
  const KilnBenchPeer* api_ = nullptr;
};

}  // namespace kiln::bench
