// The server of a TCPStore: one thread that answers all clients.
#pragma once

#include <atomic>
#include <list>
#include <string>
#include <thread>

#include "kiln/distributed/socket.h"
#include "kiln/distributed/store_message.h"
#include "kiln/distributed/store_table.h"

namespace kiln::distributed {

class TCPStoreServer {
 public:
  // Throws DistNetworkError when the port cannot be had.
  explicit TCPStoreServer(const Address& address);
  ~TCPStoreServer();
  TCPStoreServer(const TCPStoreServer&) = delete;
  TCPStoreServer& operator=(const TCPStoreServer&) = delete;
  uint16_t port() const { return listener_.port(); }

 private:
  struct Client {
    Socket socket;
    std::string received = {};
    std::string to_send = {};
    bool greeted = false;
    // What it waits for: its question, until when.
    std::optional<StoreMessage> waiting = {};
    Clock::time_point until = {};
  };

  void serve() noexcept;
  void serve_once();
  void read(Client& client);
  // The answer; nothing while it has to wait.
  std::optional<StoreMessage> answer(Client& client, StoreMessage& question);
  void say(Client& client, const StoreMessage& message);
  void flush(Client& client);

  Listener listener_;
  Socket wake_reader_;
  Socket wake_writer_;
  StoreTable table_;
  std::list<Client> clients_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace kiln::distributed
