// Stores: each kind by the same rules, and what strangers send a server.
#include "kiln/distributed/store.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "kiln/distributed/error.h"
#include "kiln/distributed/file_store.h"
#include "kiln/distributed/store_message.h"
#include "kiln/distributed/tcp_store.h"
#include "tests/support/temp_dir.h"

using namespace kiln;
using namespace kiln::distributed;
using namespace std::chrono_literals;

namespace {

// What every store does, through two names of one.
void check_store(Store& a, Store& b) {
  a.set("key", std::string("v\0alue", 6));
  CHECK(b.get("key") == std::string("v\0alue", 6));
  CHECK(a.add("count", 5) == 5);
  CHECK(b.add("count", -7) == -2);
  CHECK(a.get("count") == "-2");
  CHECK_THROWS_AS(a.add("key", 1), DistStoreError);
  b.append("log", "one");
  a.append("log", "two");
  CHECK(b.get("log") == "onetwo");
  // As PyTorch has it.
  CHECK(a.compare_set("c", "other", "new") == "other");
  CHECK_FALSE(a.check({"c"}));
  CHECK(a.compare_set("c", "", "first") == "first");
  CHECK(b.compare_set("c", "wrong", "second") == "first");
  CHECK(b.compare_set("c", "first", "second") == "second");
  CHECK(a.check({"c", "log"}));
  CHECK_FALSE(a.check({"c", "nothing"}));
  CHECK(a.num_keys() == 4);
  CHECK(a.delete_key("c"));
  CHECK_FALSE(b.delete_key("c"));
  CHECK(b.num_keys() == 3);
  CHECK_THROWS_AS(a.wait({"key", "late"}, 30ms), DistStoreError);
  std::thread later([&b] {
    std::this_thread::sleep_for(20ms);
    b.set("late", "");
  });
  a.wait({"key", "late"});
  CHECK(a.get("late").empty());
  later.join();
  CHECK_THROWS_AS(a.set_timeout(0ms), ValueError);
  a.set_timeout(20ms);
  CHECK_THROWS_WITH_AS(a.get("never"), doctest::Contains("never"), DistStoreError);
  a.set_timeout(10s);
  b.set("key", "again");
  CHECK(a.get("key") == "again");
}

}  // namespace

TEST_CASE("a store of threads") {
  HashStore store(10s);
  check_store(store, store);
  CHECK_THROWS_AS(HashStore(0ms), ValueError);
}

TEST_CASE("a store in a file") {
  const test::TempDir folder;
  const std::string path = folder.path("store");
  {
    FileStore a(path, 2, 10s);
    FileStore b(path, 2, 10s);
    check_store(a, b);
  }
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK_THROWS_AS(FileStore(folder.path("no/folder")), DistStoreError);
  CHECK_THROWS_AS(FileStore(path, 0), ValueError);
  for (const std::string bytes : {"nonsense", "S", "S\xff\xff\xff\xff\xff\xff\xff\xff aaaaaaaa"}) {
    std::ofstream(path, std::ios::binary) << bytes;
    CHECK_THROWS_WITH_AS(FileStore{path}, doctest::Contains("damaged"), DistStoreError);
  }
}

TEST_CASE("a store that one process serves") {
  TCPStore server({.port = 0, .is_master = true, .timeout = 10s});
  TCPStore client({.port = server.port(), .timeout = 10s});
  CHECK(client.local_host() == "127.0.0.1");
  check_store(server, client);
  PrefixStore a("part", std::make_shared<HashStore>());
  CHECK_THROWS_AS(PrefixStore("part", nullptr), ValueError);
  CHECK_THROWS_AS(TCPStore({.port = 0}), ValueError);
  CHECK_THROWS_AS(TCPStore({.port = server.port(), .is_master = true}), DistNetworkError);
  CHECK_THROWS_AS(client.set("large", std::string(kLargestStoreMessage, 'x')), ValueError);
  client.set("large", std::string(1 << 20, 'y'));
  CHECK(server.get("large").size() == 1 << 20);
}

TEST_CASE("a store with a prefix") {
  const auto store = std::make_shared<HashStore>(10s);
  PrefixStore a("p", store);
  check_store(a, a);
  CHECK(store->get("p/key") == "again");
}

TEST_CASE("workers that do not come, and a server that goes") {
  CHECK_THROWS_AS(TCPStore({.port = 0, .world_size = 2, .is_master = true, .timeout = 500ms}),
                  DistStoreError);
  auto server = std::make_unique<TCPStore>(TCPStoreOptions{.port = 0, .is_master = true});
  const uint16_t port = server->port();
  TCPStore client({.port = port, .timeout = 5s});
  client.set("a", "1");
  server.reset();
  CHECK_THROWS_WITH_AS(client.get("a"), doctest::Contains("out of reach"), DistStoreError);
  CHECK_THROWS_AS(client.get("a"), DistStoreError);
  CHECK_THROWS_WITH_AS(TCPStore({.port = port, .timeout = 50ms}),
                       doctest::Contains("nobody answers"), DistNetworkError);
}

TEST_CASE("a server and strangers") {
  TCPStore server({.port = 0, .is_master = true, .timeout = 5s});
  const Address address{"127.0.0.1", server.port()};
  const Deadline deadline(5s);
  const auto say = [&](const std::string& text) {
    Socket socket = connect_to(address, deadline);
    socket.send(std::as_bytes(std::span(text.data(), text.size())), deadline);
    std::byte answer[8];
    // A greeting may come; then the server closes.
    CHECK_THROWS_AS(
        [&] {
          socket.receive(answer, deadline);
          socket.receive(answer, deadline);
        }(),
        DistNetworkError);
  };
  const std::string greeting(kStoreGreeting);
  say("GET / HTTP/1.1\r\n\r\n");
  say(greeting + std::string("\0\0\0\0", 4));                     // an empty message
  say(greeting + "\xff\xff\xff\xff");                             // one of 4 GiB
  say(greeting + to_bytes({200, {"a"}}));                         // an unknown question
  say(greeting + to_bytes({0, {"only a key"}}));                  // too few texts
  say(greeting + to_bytes({2, {"key", "no number"}}));            // add
  say(greeting + to_bytes({1, {"no time", "key"}}));              // get
  say(greeting + std::string("\x09\0\0\0\0\xff\0\0\0abcd", 13));  // a text beyond the message
  // One that stays silent holds up nobody.
  const Socket silent = connect_to(address, deadline);
  server.set("a", "1");
  CHECK(server.get("a") == "1");
}

TEST_CASE("messages come in any pieces") {
  const std::string bytes = to_bytes({3, {"", "text"}}) + to_bytes({4, {}});
  std::string received;
  std::vector<StoreMessage> found;
  for (const char c : bytes) {
    received += c;
    if (auto message = take_message(received)) found.push_back(*message);
  }
  REQUIRE(found.size() == 2);
  CHECK(found[0].kind == 3);
  CHECK(found[0].texts == std::vector<std::string>{"", "text"});
  CHECK(found[1].texts.empty());
}
