#include "kiln/distributed/mesh.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>
#include <thread>
#include <utility>

#include "kiln/distributed/error.h"

namespace kiln::distributed {

namespace {

// What a process says of itself when it connects: that it belongs to this group, which a stranger
// does not know, and how its numbers lie in memory.
struct Greeting {
  std::array<char, 8> magic{'K', 'I', 'L', 'N', 'M', 'S', 'H', '1'};
  uint32_t order = 0x01020304;
  uint32_t rank = 0;
  std::array<char, 32> token{};

  bool is_of(const Greeting& group) const {
    return magic == group.magic && order == group.order && token == group.token;
  }
};

std::array<char, 32> new_token() {
  std::random_device random;
  std::array<char, 32> token;
  for (char& c : token) c = "0123456789abcdef"[random() % 16];
  return token;
}

std::span<std::byte> bytes_of(Greeting& greeting) {
  return std::as_writable_bytes(std::span(&greeting, 1));
}

// How long a stranger who connects and says nothing may hold up the others.
constexpr milliseconds kGreetingTime = std::chrono::seconds(5);

// A message on its way.
struct Transfer {
  MessageHead head;
  size_t moved = 0;  // of the head and what follows it
};

// All messages of one peer in one direction.
template <class Message>
struct Lane {
  std::vector<const Message*> messages = {};
  size_t at = 0;
  Transfer transfer = {};

  bool is_done() const { return at == messages.size(); }
  void next() {
    ++at;
    transfer = {};
  }
};

// How long after a lost process others are looked for: one that ends takes with it those that wait
// for it, and the first that is seen need not be the first that ended.
constexpr milliseconds kOthers{20};

// Whether the other side has closed the connection; what came before may still be there.
bool is_closed(const Socket& socket) {
#if defined(POLLRDHUP)
  constexpr short kClosed = POLLRDHUP;
#else
  constexpr short kClosed = POLLHUP;
#endif
  pollfd state{socket.fd(), kClosed, 0};
  return ::poll(&state, 1, 0) > 0;
}

}  // namespace

Mesh::Mesh(Store& store, const std::string& name, int rank, int size, const std::string& host,
           milliseconds timeout)
    : rank_(rank), sockets_(static_cast<size_t>(size)) {
  if (size == 1) return;
  const Deadline deadline(timeout);
  Greeting own{.rank = static_cast<uint32_t>(rank)};
  if (rank == 0) {
    own.token = new_token();
    store.set(name + "/token", std::string(own.token.begin(), own.token.end()));
  }
  Listener listener({host, 0});
  store.set(concat(name, "/", rank), concat(static_cast<int>(listener.port()), " ", host));
  if (rank != 0) {
    const std::string token = store.get(name + "/token");
    if (token.size() != own.token.size()) {
      throw_error<DistStoreError>("the store has a malformed value at ", name, "/token");
    }
    std::ranges::copy(token, own.token.begin());
  }
  for (int peer = 0; peer < rank; ++peer) {
    const std::string key = concat(name, "/", peer);
    const std::string text = store.get(key);
    const size_t space = text.find(' ');
    if (space == std::string::npos) {
      throw_error<DistStoreError>("the store has a malformed value at ", key, ": ", text);
    }
    const Address address{text.substr(space + 1),
                          static_cast<uint16_t>(std::atoi(text.substr(0, space).c_str()))};
    try {
      Socket socket = connect_to(address, deadline);
      socket.send(bytes_of(own), deadline);
      Greeting other;
      socket.receive(bytes_of(other), deadline);
      if (!other.is_of(own) || other.rank != static_cast<uint32_t>(peer)) {
        throw_error<DistNetworkError>("another program answers at ", address);
      }
      this->socket(peer) = std::move(socket);
    } catch (const DistNetworkError& e) {
      throw_error<DistNetworkError>("rank ", rank, " cannot connect to rank ", peer, ": ",
                                    e.what());
    }
  }
  for (int missing = size - 1 - rank; missing > 0;) {
    std::optional<Socket> socket = listener.accept(deadline);
    if (!socket) {
      std::string ranks;
      for (int peer = rank + 1; peer < size; ++peer) {
        if (!this->socket(peer).is_open()) ranks += concat(ranks.empty() ? "" : ", ", peer);
      }
      throw_error<DistNetworkError>("rank ", rank, " waited ", text_of(timeout), " for rank ",
                                    ranks);
    }
    try {
      const Deadline soon(std::min(kGreetingTime, deadline.left()));
      Greeting other;
      socket->receive(bytes_of(other), soon);
      const bool fits =
          other.is_of(own) && other.rank > own.rank && std::cmp_less(other.rank, size);
      if (!fits || this->socket(static_cast<int>(other.rank)).is_open()) continue;  // a stranger
      socket->send(bytes_of(own), soon);
      this->socket(static_cast<int>(other.rank)) = std::move(*socket);
      --missing;
    } catch (const DistNetworkError&) {
      // It left, or says nothing.
    }
  }
}

void Mesh::exchange(const Operation& operation, std::span<const Outgoing> outgoing,
                    std::span<const Incoming> incoming, milliseconds timeout) {
  const Deadline deadline(timeout);
  std::vector<Lane<Outgoing>> out(sockets_.size());
  std::vector<Lane<Incoming>> in(sockets_.size());
  for (const Outgoing& message : outgoing) {
    out[static_cast<size_t>(message.peer)].messages.push_back(&message);
  }
  for (const Incoming& message : incoming) {
    in[static_cast<size_t>(message.peer)].messages.push_back(&message);
  }
  // Moves what can be moved at once; whether anything was.
  const auto send_some = [&](size_t peer) {
    Lane<Outgoing>& lane = out[peer];
    bool moved = false;
    while (!lane.is_done()) {
      const Outgoing& message = *lane.messages[lane.at];
      lane.transfer.head = {operation, message.phase, message.bytes.size()};
      const size_t whole = sizeof(MessageHead) + message.bytes.size();
      const size_t sent = sockets_[peer].try_send_after(
          std::as_bytes(std::span(&lane.transfer.head, 1)), message.bytes, lane.transfer.moved);
      lane.transfer.moved += sent;
      moved = moved || sent > 0;
      if (lane.transfer.moved < whole) break;
      lane.next();
    }
    return moved;
  };
  const auto receive_some = [&](size_t peer) {
    Lane<Incoming>& lane = in[peer];
    bool moved = false;
    while (!lane.is_done()) {
      const Incoming& message = *lane.messages[lane.at];
      const size_t whole = sizeof(MessageHead) + message.bytes.size();
      const size_t before = lane.transfer.moved;
      const size_t got = sockets_[peer].try_receive_after(
          std::as_writable_bytes(std::span(&lane.transfer.head, 1)), message.bytes, before);
      lane.transfer.moved += got;
      moved = moved || got > 0;
      if (before < sizeof(MessageHead) && lane.transfer.moved >= sizeof(MessageHead)) {
        const MessageHead& head = lane.transfer.head;
        if (!(head.operation == operation) || head.phase != message.phase ||
            head.bytes != message.bytes.size()) {
          throw_error<DistBackendError>(
              name_of(operation.kind),
              ": the processes of a group must do the same in the same order; "
              "rank ",
              peer, " did ", head.operation, ", with ", head.bytes, " bytes in a message; rank ",
              rank_, " did ", operation, ", with ", message.bytes.size(), " bytes");
        }
      }
      if (lane.transfer.moved < whole) break;
      lane.next();
    }
    return moved;
  };
  std::vector<pollfd> waiting;
  for (;;) {
    bool moved = false;
    waiting.clear();
    for (size_t peer = 0; peer < sockets_.size(); ++peer) {
      try {
        moved = send_some(peer) || moved;
        moved = receive_some(peer) || moved;
      } catch (const DistNetworkError& e) {
        throw_lost(operation, static_cast<int>(peer), e.what());
      }
      const short events = static_cast<short>((out[peer].is_done() ? 0 : POLLOUT) |
                                              (in[peer].is_done() ? 0 : POLLIN));
      if (events != 0) waiting.push_back({sockets_[peer].fd(), events, 0});
    }
    if (waiting.empty()) return;
    if (moved || wait_for_events(waiting, deadline)) continue;
    std::string late;
    for (size_t peer = 0; peer < sockets_.size(); ++peer) {
      if (out[peer].is_done() && in[peer].is_done()) continue;
      late += concat(late.empty() ? "" : ", ", peer);
    }
    throw_error<DistBackendError>(operation, ": rank ", rank_, " waited ", text_of(timeout),
                                  " for rank ", late);
  }
}

void Mesh::throw_lost(const Operation& operation, int peer, const char* why) const {
  std::this_thread::sleep_for(kOthers);
  std::string ranks;
  int count = 0;
  for (int other = 0; other < size(); ++other) {
    if (other == rank_ || (other != peer && !is_closed(sockets_[static_cast<size_t>(other)])))
      continue;
    ranks += concat(count++ == 0 ? "" : ", ", other);
  }
  throw_error<DistBackendError>(name_of(operation.kind), ": lost the process",
                                count == 1 ? "" : "es", " of rank", count == 1 ? " " : "s ", ranks,
                                ": ", why);
}

void Mesh::shut_down() noexcept {
  for (Socket& socket : sockets_) socket.shut_down();
}

}  // namespace kiln::distributed
