// TCP connections that carry bytes both ways and never block without a deadline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "kiln/distributed/wait.h"

namespace kiln::distributed {

// A host by its name or number (IPv4 or IPv6), and a port.
struct Address {
  std::string host;
  uint16_t port = 0;
};
std::string to_string(const Address& address);  // "127.0.0.1:29500", "[::1]:29500"

// Owns a connection. All functions throw DistNetworkError when it is broken, or when the other side
// has closed it.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    if (this != &other) {
      close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Socket() { close(); }

  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void close() noexcept;
  // Ends the connection for both sides and wakes whoever waits for it. Any thread may call it.
  void shut_down() noexcept;

  // As many bytes as can be moved at once, which may be none.
  size_t try_send(std::span<const std::byte> bytes);
  size_t try_receive(std::span<std::byte> bytes);
  // The same for two spans that follow one another, of which `done` bytes were moved before.
  size_t try_send_after(std::span<const std::byte> first, std::span<const std::byte> second,
                        size_t done);
  size_t try_receive_after(std::span<std::byte> first, std::span<std::byte> second, size_t done);
  // All of them. Throws DistNetworkError, too, when the deadline is over first.
  void send(std::span<const std::byte> bytes, const Deadline& deadline);
  void receive(std::span<std::byte> bytes, const Deadline& deadline);

  Address local_address() const;

 private:
  int fd_ = -1;
};

// Two ends of one connection within this process: who waits for one wakes when the other is closed.
std::pair<Socket, Socket> socket_pair();

class Listener {
 public:
  // Port 0: any free one. Throws DistNetworkError where it cannot be had.
  explicit Listener(const Address& address);
  int fd() const { return socket_.fd(); }
  uint16_t port() const { return port_; }
  // The next connection; none when the deadline is over first.
  std::optional<Socket> accept(const Deadline& deadline);

 private:
  Socket socket_;
  uint16_t port_ = 0;
};

// Tries again while nobody listens there, until the deadline is over: the other process may still
// be starting. Throws DistNetworkError then, and for a host that is not known.
Socket connect_to(const Address& address, const Deadline& deadline);

}  // namespace kiln::distributed
