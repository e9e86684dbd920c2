// FileStore: a store in a file that all processes reach.
#pragma once

#include <mutex>
#include <optional>

#include "kiln/distributed/store.h"

namespace kiln::distributed {

// The file holds all changes one after the other; each process reads what is new to it. Locks
// (flock) keep writers apart, so the file system must have them.
class FileStore final : public Store {
 public:
  // Makes the file where there is none. With `world_size` the last of so many processes that lets
  // go of it removes it. Throws DistStoreError when it cannot be opened.
  explicit FileStore(std::string path, std::optional<int64_t> world_size = {},
                     milliseconds timeout = std::chrono::minutes(5));
  ~FileStore() override;

  const std::string& path() const { return path_; }
  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key) override;
  int64_t add(const std::string& key, int64_t amount) override;
  void append(const std::string& key, const std::string& value) override;
  std::string compare_set(const std::string& key, const std::string& expected,
                          const std::string& desired) override;
  bool check(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys, milliseconds timeout) override;
  bool delete_key(const std::string& key) override;
  int64_t num_keys() override;  // without the one that counts processes
  using Store::wait;

 private:
  class Locked;

  void read_new();
  // What is in the table for the key goes to the end of the file.
  void write(const std::string& key);

  std::string path_;
  std::optional<int64_t> world_size_;
  std::mutex mutex_;
  int fd_ = -1;
  int64_t read_to_ = 0;  // bytes of the file that the table knows
  StoreTable table_;
};

}  // namespace kiln::distributed
