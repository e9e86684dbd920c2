// TCPStore: a store that one process serves to all.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "kiln/distributed/socket.h"
#include "kiln/distributed/store.h"
#include "kiln/distributed/store_message.h"

namespace kiln::distributed {

class TCPStoreServer;

struct TCPStoreOptions {
  std::string host_name = "127.0.0.1";  // where the server is
  uint16_t port = 29500;                // 0, for the server: any free one
  std::optional<int64_t> world_size = {};
  bool is_master = false;  // whether this process serves
  milliseconds timeout = std::chrono::minutes(5);
  // The master waits until `world_size` processes are connected.
  bool wait_for_workers = true;
};

class TCPStore final : public Store {
 public:
  // Throws DistNetworkError when the port cannot be had or nobody serves there in time, and
  // DistStoreError when workers do not come in time.
  explicit TCPStore(const TCPStoreOptions& options);
  ~TCPStore() override;

  const std::string& host() const { return options_.host_name; }
  uint16_t port() const { return options_.port; }
  // By which address this process reaches the server: where others reach this process.
  std::string local_host() const;

  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key) override;
  int64_t add(const std::string& key, int64_t amount) override;
  void append(const std::string& key, const std::string& value) override;
  std::string compare_set(const std::string& key, const std::string& expected,
                          const std::string& desired) override;
  bool check(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys, milliseconds timeout) override;
  bool delete_key(const std::string& key) override;
  int64_t num_keys() override;
  using Store::wait;

 private:
  void join(const Deadline& deadline);
  bool greet(const Deadline& deadline);
  void wait_for_workers();
  // The texts of the answer. `timeout`: how long the server may let it wait.
  std::vector<std::string> ask(StoreOp op, std::vector<std::string> texts,
                               std::optional<milliseconds> timeout = {});
  std::string ask_one(StoreOp op, std::vector<std::string> texts,
                      std::optional<milliseconds> timeout = {});
  int64_t ask_number(StoreOp op, std::vector<std::string> texts);

  TCPStoreOptions options_;
  std::shared_ptr<TCPStoreServer> server_;  // of the master
  std::mutex mutex_;                        // one question at a time
  Socket socket_;
  std::string received_;
};

}  // namespace kiln::distributed
