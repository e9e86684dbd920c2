#include "kiln/distributed/tcp_store.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <thread>
#include <utility>

#include "kiln/distributed/error.h"
#include "kiln/distributed/tcp_store_server.h"

namespace kiln::distributed {

namespace {

// What a server has beyond the time that it lets a client wait.
constexpr milliseconds kGrace = std::chrono::seconds(10);
// After a server that closed the connection.
constexpr milliseconds kAgain{50};

const std::string kJoined = "init/joined";
const std::string kComplete = "init/complete";

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

TCPStore::TCPStore(const TCPStoreOptions& options) : Store(options.timeout), options_(options) {
  if (options_.world_size && *options_.world_size < 1) {
    throw_error<ValueError>("TCPStore: world_size must be positive; got ", *options_.world_size);
  }
  const Deadline deadline(options_.timeout);
  if (options_.is_master) {
    server_ = std::make_shared<TCPStoreServer>(Address{options_.host_name, options_.port});
    options_.port = server_->port();
  } else if (options_.port == 0) {
    throw_error<ValueError>("TCPStore: only the master's port may be 0");
  }
  join(deadline);
  if (options_.world_size) {
    if (add(kJoined, 1) == *options_.world_size) set(kComplete, "1");
    if (options_.is_master && options_.wait_for_workers) wait_for_workers();
  }
}

// A server that is about to end closes the connection before it has answered: another one may come
// in its place.
void TCPStore::join(const Deadline& deadline) {
  for (;;) {
    socket_ = connect_to({options_.host_name, options_.port}, deadline);
    try {
      if (greet(deadline)) return;
    } catch (const DistNetworkError&) {
      if (options_.is_master || deadline.left() <= kAgain) throw;
      std::this_thread::sleep_for(kAgain);
      continue;
    }
    throw_error<DistNetworkError>("TCPStore: what answers at ",
                                  Address{options_.host_name, options_.port},
                                  " is no TCPStore of Kiln's");
  }
}

// Whether what answers is a server of this kind.
bool TCPStore::greet(const Deadline& deadline) {
  socket_.send(bytes_of(kStoreGreeting), deadline);
  std::array<std::byte, kStoreGreeting.size()> greeting{};
  socket_.receive(greeting, deadline);
  return std::ranges::equal(greeting, bytes_of(kStoreGreeting));
}

void TCPStore::wait_for_workers() {
  try {
    wait({kComplete}, options_.timeout);
  } catch (const DistStoreError&) {
    throw_error<DistStoreError>("TCPStore: ", add(kJoined, 0), " of ", *options_.world_size,
                                " processes came within ", text_of(options_.timeout));
  }
}

TCPStore::~TCPStore() = default;

std::string TCPStore::local_host() const { return socket_.local_address().host; }

std::vector<std::string> TCPStore::ask(StoreOp op, std::vector<std::string> texts,
                                       std::optional<milliseconds> timeout) {
  const std::vector<std::string> keys = texts;
  if (timeout) texts.insert(texts.begin(), std::to_string(timeout->count()));
  const std::string question = to_bytes({static_cast<uint8_t>(op), std::move(texts)});
  const std::lock_guard lock(mutex_);
  if (!socket_.is_open()) throw_error<DistStoreError>("TCPStore: the connection was lost before");
  try {
    const Deadline deadline(timeout.value_or(this->timeout()) + kGrace);
    socket_.send(bytes_of(question), deadline);
    std::optional<StoreMessage> answer;
    std::array<std::byte, 4096> part;
    while (!(answer = take_message(received_))) {
      const size_t got = socket_.try_receive(part);
      received_.append(reinterpret_cast<const char*>(part.data()), got);
      if (got > 0) continue;
      pollfd ready{socket_.fd(), POLLIN, 0};
      if (!wait_for_events({&ready, 1}, deadline)) {
        throw_error<DistNetworkError>("no answer came in time");
      }
    }
    switch (static_cast<StoreOutcome>(answer->kind)) {
      case StoreOutcome::done:
        return std::move(answer->texts);
      case StoreOutcome::late:
        throw_not_in_time(keys, *timeout);
      default:
        throw_error<DistStoreError>(answer->texts.empty() ? "TCPStore: refused" : answer->texts[0]);
    }
  } catch (const DistNetworkError& e) {
    socket_.close();  // what comes next would be read as the answer to another question
    throw_error<DistStoreError>("TCPStore: the server at ",
                                Address{options_.host_name, options_.port},
                                " is out of reach: ", e.what());
  } catch (const DistStoreError&) {
    throw;
  } catch (...) {
    socket_.close();  // a signal's handler threw in the middle of an answer
    throw;
  }
}

std::string TCPStore::ask_one(StoreOp op, std::vector<std::string> texts,
                              std::optional<milliseconds> timeout) {
  std::vector<std::string> answer = ask(op, std::move(texts), timeout);
  if (answer.size() != 1) throw_error<DistStoreError>("TCPStore: a malformed answer came");
  return std::move(answer[0]);
}

int64_t TCPStore::ask_number(StoreOp op, std::vector<std::string> texts) {
  const std::string text = ask_one(op, std::move(texts));
  int64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc()) throw_error<DistStoreError>("TCPStore: a malformed answer came");
  return number;
}

void TCPStore::set(const std::string& key, const std::string& value) {
  ask(StoreOp::set, {key, value});
}

std::string TCPStore::get(const std::string& key) {
  return ask_one(StoreOp::get, {key}, timeout());
}

int64_t TCPStore::add(const std::string& key, int64_t amount) {
  return ask_number(StoreOp::add, {key, std::to_string(amount)});
}

void TCPStore::append(const std::string& key, const std::string& value) {
  ask(StoreOp::append, {key, value});
}

std::string TCPStore::compare_set(const std::string& key, const std::string& expected,
                                  const std::string& desired) {
  return ask_one(StoreOp::compare_set, {key, expected, desired});
}

bool TCPStore::check(const std::vector<std::string>& keys) {
  return ask_number(StoreOp::check, keys) != 0;
}

void TCPStore::wait(const std::vector<std::string>& keys, milliseconds timeout) {
  ask(StoreOp::wait, keys, timeout);
}

bool TCPStore::delete_key(const std::string& key) { return ask_number(StoreOp::erase, {key}) != 0; }

int64_t TCPStore::num_keys() { return ask_number(StoreOp::count, {}); }

}  // namespace kiln::distributed
