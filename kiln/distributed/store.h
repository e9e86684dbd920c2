// Stores of keys and values by which processes find one another. PyTorch's c10d stores.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kiln/distributed/store_table.h"
#include "kiln/distributed/wait.h"

namespace kiln::distributed {

// Keys and values are bytes. Any thread may use one. Functions throw DistStoreError when the store
// is out of reach.
class Store {
 public:
  // `timeout`: of get() and wait(). Throws ValueError when it is not positive.
  explicit Store(milliseconds timeout);
  virtual ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  milliseconds timeout() const { return timeout_; }
  virtual void set_timeout(milliseconds timeout);

  virtual void set(const std::string& key, const std::string& value) = 0;
  // The value, as soon as there is one. Throws DistStoreError when the timeout is over first.
  virtual std::string get(const std::string& key) = 0;
  // Adds to the number that a key has as decimal text (0 when it has none), which it gives. Throws
  // DistStoreError for a value that is no number.
  virtual int64_t add(const std::string& key, int64_t amount) = 0;
  // Adds bytes at the end of a value.
  virtual void append(const std::string& key, const std::string& value) = 0;
  // Sets `desired` where the value is `expected`, or where there is none and `expected` is empty.
  // Returns the value that is there afterwards; `expected` where there is none.
  virtual std::string compare_set(const std::string& key, const std::string& expected,
                                  const std::string& desired) = 0;
  // Whether all keys are there.
  virtual bool check(const std::vector<std::string>& keys) = 0;
  // Until they are. Throws DistStoreError when the timeout is over first.
  virtual void wait(const std::vector<std::string>& keys, milliseconds timeout) = 0;
  void wait(const std::vector<std::string>& keys) { wait(keys, timeout_); }
  // Whether there was one.
  virtual bool delete_key(const std::string& key) = 0;
  virtual int64_t num_keys() = 0;

 private:
  milliseconds timeout_;
};

[[noreturn]] void throw_not_in_time(const std::vector<std::string>& keys, milliseconds timeout);

// For the threads of one process.
class HashStore final : public Store {
 public:
  explicit HashStore(milliseconds timeout = std::chrono::minutes(5)) : Store(timeout) {}

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
  std::mutex mutex_;
  std::condition_variable changed_;
  StoreTable table_;
};

// Another store, with a prefix before each key: parts of a program that know nothing of one another
// share a store.
class PrefixStore final : public Store {
 public:
  // Throws ValueError without a store.
  PrefixStore(std::string prefix, std::shared_ptr<Store> store);

  const std::shared_ptr<Store>& underlying_store() const { return store_; }
  void set_timeout(milliseconds timeout) override;
  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key) override;
  int64_t add(const std::string& key, int64_t amount) override;
  void append(const std::string& key, const std::string& value) override;
  std::string compare_set(const std::string& key, const std::string& expected,
                          const std::string& desired) override;
  bool check(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys, milliseconds timeout) override;
  bool delete_key(const std::string& key) override;
  int64_t num_keys() override;  // of the whole store
  using Store::wait;

 private:
  std::string of(const std::string& key) const { return prefix_ + "/" + key; }

  std::string prefix_;
  std::shared_ptr<Store> store_;
};

}  // namespace kiln::distributed
