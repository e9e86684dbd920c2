#include "kiln/distributed/tcp_store_server.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>
#include <vector>

#include "kiln/distributed/error.h"

namespace kiln::distributed {

namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// A number that a client sent as text.
int64_t number_of(const std::string& text) {
  int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) {
    throw_error<DistNetworkError>("TCPStore: a malformed number came");
  }
  return number;
}

void expect(bool fits) {
  if (!fits) throw_error<DistNetworkError>("TCPStore: a malformed question came");
}

// A value must fit into an answer.
void check_append(const std::string* value, const std::string& more) {
  if (value != nullptr && value->size() + more.size() > kLargestStoreMessage / 2) {
    throw_error<DistStoreError>("append: a value must have at most ", kLargestStoreMessage / 2,
                                " bytes");
  }
}

StoreMessage done(std::string text) {
  return {static_cast<uint8_t>(StoreOutcome::done), {std::move(text)}};
}

StoreMessage done() { return {static_cast<uint8_t>(StoreOutcome::done)}; }

}  // namespace

TCPStoreServer::TCPStoreServer(const Address& address) : listener_(address) {
  std::tie(wake_reader_, wake_writer_) = socket_pair();
  thread_ = std::thread([this] { serve(); });
}

TCPStoreServer::~TCPStoreServer() {
  stop_ = true;
  wake_writer_.close();
  thread_.join();
}

void TCPStoreServer::serve() noexcept {
  while (!stop_) {
    try {
      serve_once();
    } catch (const std::exception&) {
      // Such as no memory for a moment; clients see that nothing comes.
      std::this_thread::sleep_for(milliseconds(10));
    }
  }
}

void TCPStoreServer::serve_once() {
  std::vector<pollfd> sockets{{wake_reader_.fd(), POLLIN, 0}, {listener_.fd(), POLLIN, 0}};
  auto until = Clock::now() + std::chrono::minutes(10);
  for (const Client& client : clients_) {
    const short events = client.to_send.empty() ? POLLIN : POLLIN | POLLOUT;
    sockets.push_back({client.socket.fd(), events, 0});
    if (client.waiting) until = std::min(until, client.until);
  }
  const auto pause = std::chrono::ceil<milliseconds>(until - Clock::now());
  wait_for_events(sockets, Deadline(pause));
  if (stop_) return;
  size_t at = 2;
  for (auto client = clients_.begin(); client != clients_.end();) {
    const short events = sockets[at++].revents;
    try {
      if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) read(*client);
      if ((events & POLLOUT) != 0) flush(*client);
      ++client;
    } catch (const DistNetworkError&) {
      client = clients_.erase(client);  // it left, or speaks something else
    }
  }
  if ((sockets[1].revents & POLLIN) != 0) {
    if (std::optional<Socket> socket = listener_.accept(Deadline(milliseconds(0)))) {
      clients_.push_back({std::move(*socket)});
    }
  }
  // What changed may be what somebody waits for.
  for (auto client = clients_.begin(); client != clients_.end();) {
    try {
      if (client->waiting) {
        std::optional<StoreMessage> message = answer(*client, *client->waiting);
        if (!message && Clock::now() >= client->until) {
          message = StoreMessage{static_cast<uint8_t>(StoreOutcome::late)};
        }
        if (message) {
          client->waiting.reset();
          say(*client, *message);
        }
      }
      ++client;
    } catch (const DistNetworkError&) {
      client = clients_.erase(client);
    }
  }
}

void TCPStoreServer::read(Client& client) {
  std::array<std::byte, 65536> part;
  const size_t got = client.socket.try_receive(part);
  client.received.append(reinterpret_cast<const char*>(part.data()), got);
  if (!client.greeted) {
    const size_t size = kStoreGreeting.size();
    const std::string_view start = std::string_view(client.received).substr(0, size);
    expect(start == kStoreGreeting.substr(0, start.size()));
    if (start.size() < size) return;
    client.received.erase(0, size);
    client.greeted = true;
    client.to_send += kStoreGreeting;
    flush(client);
  }
  while (!client.waiting) {
    std::optional<StoreMessage> question = take_message(client.received);
    if (!question) return;
    std::optional<StoreMessage> message;
    try {
      message = answer(client, *question);
    } catch (const DistStoreError& e) {
      message = {static_cast<uint8_t>(StoreOutcome::refused), {e.what()}};
    }
    if (message) {
      say(client, *message);
    } else {
      client.waiting = std::move(question);
    }
  }
}

std::optional<StoreMessage> TCPStoreServer::answer(Client& client, StoreMessage& question) {
  std::vector<std::string>& texts = question.texts;
  const auto op = static_cast<StoreOp>(question.kind);
  const bool waits = op == StoreOp::get || op == StoreOp::wait;
  if (waits && !client.waiting) {
    expect(!texts.empty());
    constexpr int64_t kMost = int64_t{1000} * 3600 * 24 * 365;
    const auto time = milliseconds(std::clamp<int64_t>(number_of(texts[0]), 0, kMost));
    client.until = Clock::now() + time;
    texts.erase(texts.begin());
  }
  switch (op) {
    case StoreOp::set:
      expect(texts.size() == 2);
      table_.set(texts[0], texts[1]);
      return done();
    case StoreOp::get: {
      expect(texts.size() == 1);
      const std::string* const value = table_.find(texts[0]);
      return value == nullptr ? std::optional<StoreMessage>() : done(*value);
    }
    case StoreOp::add:
      expect(texts.size() == 2);
      return done(std::to_string(table_.add(texts[0], number_of(texts[1]))));
    case StoreOp::append:
      expect(texts.size() == 2);
      check_append(table_.find(texts[0]), texts[1]);
      table_.append(texts[0], texts[1]);
      return done();
    case StoreOp::compare_set:
      expect(texts.size() == 3);
      return done(table_.compare_set(texts[0], texts[1], texts[2]));
    case StoreOp::check:
      return done(table_.has(texts) ? "1" : "0");
    case StoreOp::wait:
      return table_.has(texts) ? done() : std::optional<StoreMessage>();
    case StoreOp::erase:
      expect(texts.size() == 1);
      return done(table_.erase(texts[0]) ? "1" : "0");
    case StoreOp::count:
      return done(std::to_string(table_.size()));
  }
  expect(false);
  return std::nullopt;
}

void TCPStoreServer::say(Client& client, const StoreMessage& message) {
  client.to_send += to_bytes(message);
  flush(client);
}

void TCPStoreServer::flush(Client& client) {
  const size_t sent = client.socket.try_send(bytes_of(client.to_send));
  client.to_send.erase(0, sent);
}

}  // namespace kiln::distributed
