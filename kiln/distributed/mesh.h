// Mesh: a connection between each two processes of a group.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "kiln/distributed/message.h"
#include "kiln/distributed/socket.h"
#include "kiln/distributed/store.h"

namespace kiln::distributed {

struct Outgoing {
  int peer;
  std::span<const std::byte> bytes;
  uint32_t phase = 0;
};
struct Incoming {
  int peer;
  std::span<std::byte> bytes;
  uint32_t phase = 0;
};

class Mesh {
 public:
  // All `size` processes call it with the same store and name; `host` is where others reach this
  // one. Throws DistNetworkError and DistStoreError when one does not come in time.
  Mesh(Store& store, const std::string& name, int rank, int size, const std::string& host,
       milliseconds timeout);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(sockets_.size()); }
  // The connection to a process; closed for this one itself.
  Socket& socket(int peer) { return sockets_[static_cast<size_t>(peer)]; }

  // Sends and receives messages, all at the same time; those of one peer in the given order. Throws
  // DistBackendError, naming the peer, when one ended, came too late, or sent what belongs to
  // another operation.
  void exchange(const Operation& operation, std::span<const Outgoing> outgoing,
                std::span<const Incoming> incoming, milliseconds timeout);
  // Ends all connections: who waits on either side gets an error. Any thread may call it.
  void shut_down() noexcept;

 private:
  // Names all processes that are gone.
  [[noreturn]] void throw_lost(const Operation& operation, int peer, const char* why) const;

  int rank_;
  std::vector<Socket> sockets_;
};

}  // namespace kiln::distributed
