#include "kiln/distributed/store.h"

#include <algorithm>
#include <utility>

#include "kiln/distributed/error.h"

namespace kiln::distributed {

namespace {

void check_timeout(milliseconds timeout) {
  if (timeout.count() <= 0) {
    throw_error<ValueError>("Store: the timeout must be positive; got ", text_of(timeout));
  }
}

}  // namespace

void throw_not_in_time(const std::vector<std::string>& keys, milliseconds timeout) {
  std::string names;
  for (const std::string& key : keys) names += (names.empty() ? "'" : ", '") + key + "'";
  throw_error<DistStoreError>("Store: nobody set ", names, " within ", text_of(timeout));
}

Store::Store(milliseconds timeout) : timeout_(timeout) { check_timeout(timeout); }

void Store::set_timeout(milliseconds timeout) {
  check_timeout(timeout);
  timeout_ = timeout;
}

void HashStore::set(const std::string& key, const std::string& value) {
  const std::lock_guard lock(mutex_);
  table_.set(key, value);
  changed_.notify_all();
}

std::string HashStore::get(const std::string& key) {
  wait({key});
  const std::lock_guard lock(mutex_);
  const std::string* const value = table_.find(key);
  if (value == nullptr) throw_not_in_time({key}, timeout());  // deleted again
  return *value;
}

int64_t HashStore::add(const std::string& key, int64_t amount) {
  const std::lock_guard lock(mutex_);
  const int64_t sum = table_.add(key, amount);
  changed_.notify_all();
  return sum;
}

void HashStore::append(const std::string& key, const std::string& value) {
  const std::lock_guard lock(mutex_);
  table_.append(key, value);
  changed_.notify_all();
}

std::string HashStore::compare_set(const std::string& key, const std::string& expected,
                                   const std::string& desired) {
  const std::lock_guard lock(mutex_);
  std::string value = table_.compare_set(key, expected, desired);
  changed_.notify_all();
  return value;
}

bool HashStore::check(const std::vector<std::string>& keys) {
  const std::lock_guard lock(mutex_);
  return table_.has(keys);
}

void HashStore::wait(const std::vector<std::string>& keys, milliseconds timeout) {
  const Deadline deadline(timeout);
  std::unique_lock lock(mutex_);
  while (!table_.has(keys)) {
    if (deadline.is_over()) throw_not_in_time(keys, timeout);
    changed_.wait_until(lock, std::min(deadline.end(), Clock::now() + kInterruptEvery));
    lock.unlock();
    check_interrupt();
    lock.lock();
  }
}

bool HashStore::delete_key(const std::string& key) {
  const std::lock_guard lock(mutex_);
  return table_.erase(key);
}

int64_t HashStore::num_keys() {
  const std::lock_guard lock(mutex_);
  return table_.size();
}

PrefixStore::PrefixStore(std::string prefix, std::shared_ptr<Store> store)
    : Store(store == nullptr ? milliseconds(1) : store->timeout()),
      prefix_(std::move(prefix)),
      store_(std::move(store)) {
  if (store_ == nullptr) throw_error<ValueError>("PrefixStore: there is no store");
}

void PrefixStore::set_timeout(milliseconds timeout) {
  Store::set_timeout(timeout);
  store_->set_timeout(timeout);
}

void PrefixStore::set(const std::string& key, const std::string& value) {
  store_->set(of(key), value);
}

std::string PrefixStore::get(const std::string& key) { return store_->get(of(key)); }

int64_t PrefixStore::add(const std::string& key, int64_t amount) {
  return store_->add(of(key), amount);
}

void PrefixStore::append(const std::string& key, const std::string& value) {
  store_->append(of(key), value);
}

std::string PrefixStore::compare_set(const std::string& key, const std::string& expected,
                                     const std::string& desired) {
  return store_->compare_set(of(key), expected, desired);
}

bool PrefixStore::check(const std::vector<std::string>& keys) {
  std::vector<std::string> whole;
  for (const std::string& key : keys) whole.push_back(of(key));
  return store_->check(whole);
}

void PrefixStore::wait(const std::vector<std::string>& keys, milliseconds timeout) {
  std::vector<std::string> whole;
  for (const std::string& key : keys) whole.push_back(of(key));
  store_->wait(whole, timeout);
}

bool PrefixStore::delete_key(const std::string& key) { return store_->delete_key(of(key)); }

int64_t PrefixStore::num_keys() { return store_->num_keys(); }

}  // namespace kiln::distributed
