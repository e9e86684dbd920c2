#include "kiln/distributed/socket.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "kiln/distributed/error.h"

namespace kiln::distributed {

namespace {

// What a system without it (macOS) does by another option.
#if defined(MSG_NOSIGNAL)
constexpr int kNoSignal = MSG_NOSIGNAL;
#else
constexpr int kNoSignal = 0;
#endif

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

void set_up(int fd) {
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL, 0) | O_NONBLOCK);
}

// Small messages leave at once. Large ones find room: a sender should not wait for each 64 kB.
void tune(int fd) {
  const int one = 1;
  const int room = 4 << 20;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
  ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
}

struct FreeInfo {
  void operator()(addrinfo* info) const { ::freeaddrinfo(info); }
};
using Info = std::unique_ptr<addrinfo, FreeInfo>;

Info look_up(const Address& address, bool to_listen) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = to_listen ? AI_PASSIVE : 0;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(address.port);
  const int error = ::getaddrinfo(address.host.empty() ? nullptr : address.host.c_str(),
                                  port.c_str(), &hints, &found);
  if (error != 0) {
    throw_error<DistNetworkError>("the host ", address.host,
                                  " is not known: ", ::gai_strerror(error));
  }
  return Info(found);
}

Address address_of(const sockaddr_storage& raw) {
  char host[INET6_ADDRSTRLEN] = "";
  socklen_t size = sizeof raw;
  ::getnameinfo(reinterpret_cast<const sockaddr*>(&raw), size, host, sizeof host, nullptr, 0,
                NI_NUMERICHOST);
  const uint16_t port = raw.ss_family == AF_INET6
                            ? reinterpret_cast<const sockaddr_in6*>(&raw)->sin6_port
                            : reinterpret_cast<const sockaddr_in*>(&raw)->sin_port;
  return {host, ntohs(port)};
}

// Whether the connection stands; `error` says why not.
bool try_connect(Socket& socket, const addrinfo& to, const Deadline& deadline, int& error) {
  if (::connect(socket.fd(), to.ai_addr, to.ai_addrlen) == 0) return true;
  error = errno;
  if (error != EINPROGRESS && error != EINTR) return false;
  pollfd ready{socket.fd(), POLLOUT, 0};
  if (!wait_for_events({&ready, 1}, deadline)) {
    error = ETIMEDOUT;
    return false;
  }
  socklen_t size = sizeof error;
  ::getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0;
}

// What is left of two spans after `done` bytes.
msghdr message_of(std::array<iovec, 2>& parts, std::span<std::byte> first,
                  std::span<std::byte> second, size_t done) {
  const size_t of_first = std::min(done, first.size());
  first = first.subspan(of_first);
  second = second.subspan(done - of_first);
  parts = {iovec{first.data(), first.size()}, iovec{second.data(), second.size()}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  return message;
}

[[noreturn]] void throw_broken(const char* what, int error) {
  throw_error<DistNetworkError>(what, ": ", std::strerror(error));
}

}  // namespace

std::string to_string(const Address& address) {
  const bool is_v6 = address.host.find(':') != std::string::npos;
  return is_v6 ? concat("[", address.host, "]:", static_cast<int>(address.port))
               : concat(address.host, ":", static_cast<int>(address.port));
}

void Socket::close() noexcept {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

void Socket::shut_down() noexcept {
  if (fd_ >= 0) ::shutdown(fd_, SHUT_RDWR);
}

size_t Socket::try_send(std::span<const std::byte> bytes) {
  if (bytes.empty()) return 0;
  const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), kNoSignal);
  if (sent >= 0) return static_cast<size_t>(sent);
  if (would_block(errno)) return 0;
  throw_broken("a connection broke while bytes were sent", errno);
}

size_t Socket::try_receive(std::span<std::byte> bytes) {
  if (bytes.empty()) return 0;
  const ssize_t got = ::recv(fd_, bytes.data(), bytes.size(), 0);
  if (got > 0) return static_cast<size_t>(got);
  if (got == 0) throw_error<DistNetworkError>("the other side closed the connection");
  if (would_block(errno)) return 0;
  throw_broken("a connection broke while bytes were awaited", errno);
}

size_t Socket::try_send_after(std::span<const std::byte> first, std::span<const std::byte> second,
                              size_t done) {
  std::array<iovec, 2> parts;
  msghdr message = message_of(parts, {const_cast<std::byte*>(first.data()), first.size()},
                              {const_cast<std::byte*>(second.data()), second.size()}, done);
  const ssize_t sent = ::sendmsg(fd_, &message, kNoSignal);
  if (sent >= 0) return static_cast<size_t>(sent);
  if (would_block(errno)) return 0;
  throw_broken("a connection broke while bytes were sent", errno);
}

size_t Socket::try_receive_after(std::span<std::byte> first, std::span<std::byte> second,
                                 size_t done) {
  if (done == first.size() + second.size()) return 0;
  std::array<iovec, 2> parts;
  msghdr message = message_of(parts, first, second, done);
  const ssize_t got = ::recvmsg(fd_, &message, 0);
  if (got > 0) return static_cast<size_t>(got);
  if (got == 0) throw_error<DistNetworkError>("the other side closed the connection");
  if (would_block(errno)) return 0;
  throw_broken("a connection broke while bytes were awaited", errno);
}

void Socket::send(std::span<const std::byte> bytes, const Deadline& deadline) {
  while (!bytes.empty()) {
    const size_t sent = try_send(bytes);
    bytes = bytes.subspan(sent);
    if (sent > 0 || bytes.empty()) continue;
    pollfd ready{fd_, POLLOUT, 0};
    if (!wait_for_events({&ready, 1}, deadline)) {
      throw_error<DistNetworkError>("the other side took no bytes in time");
    }
  }
}

void Socket::receive(std::span<std::byte> bytes, const Deadline& deadline) {
  while (!bytes.empty()) {
    const size_t got = try_receive(bytes);
    bytes = bytes.subspan(got);
    if (got > 0 || bytes.empty()) continue;
    pollfd ready{fd_, POLLIN, 0};
    if (!wait_for_events({&ready, 1}, deadline)) {
      throw_error<DistNetworkError>("no answer came in time");
    }
  }
}

Address Socket::local_address() const {
  sockaddr_storage raw{};
  socklen_t size = sizeof raw;
  if (::getsockname(fd_, reinterpret_cast<sockaddr*>(&raw), &size) != 0) {
    throw_broken("the address of a connection", errno);
  }
  return address_of(raw);
}

std::pair<Socket, Socket> socket_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) throw_broken("socketpair", errno);
  for (const int fd : ends) set_up(fd);
  return {Socket(ends[0]), Socket(ends[1])};
}

Listener::Listener(const Address& address) {
  const Info found = look_up(address, true);
  int error = 0;
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    Socket socket(::socket(one->ai_family, one->ai_socktype, one->ai_protocol));
    error = errno;
    if (!socket.is_open()) continue;
    set_up(socket.fd());
    const int yes = 1;
    ::setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (::bind(socket.fd(), one->ai_addr, one->ai_addrlen) == 0 &&
        ::listen(socket.fd(), SOMAXCONN) == 0) {
      port_ = socket.local_address().port;
      socket_ = std::move(socket);
      return;
    }
    error = errno;
  }
  throw_error<DistNetworkError>("cannot listen at ", address, ": ", std::strerror(error));
}

std::optional<Socket> Listener::accept(const Deadline& deadline) {
  for (;;) {
    Socket socket(::accept(fd(), nullptr, nullptr));
    if (socket.is_open()) {
      set_up(socket.fd());
      tune(socket.fd());
      return socket;
    }
    if (!would_block(errno) && errno != ECONNABORTED) throw_broken("accept", errno);
    pollfd ready{fd(), POLLIN, 0};
    if (!wait_for_events({&ready, 1}, deadline)) return std::nullopt;
  }
}

Socket connect_to(const Address& address, const Deadline& deadline) {
  int error = 0;
  for (milliseconds pause(5);; pause = std::min(pause * 2, milliseconds(200))) {
    const Info found = look_up(address, false);
    for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
      Socket socket(::socket(one->ai_family, one->ai_socktype, one->ai_protocol));
      error = errno;
      if (!socket.is_open()) continue;
      set_up(socket.fd());
      tune(socket.fd());
      if (try_connect(socket, *one, deadline, error)) return socket;
    }
    check_interrupt();
    if (deadline.left() <= pause) break;
    std::this_thread::sleep_for(pause);
  }
  throw_error<DistNetworkError>("nobody answers at ", address, ": ", std::strerror(error));
}

}  // namespace kiln::distributed
