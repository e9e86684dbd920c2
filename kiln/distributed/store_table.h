// What a store holds: the rules that all kinds of stores have in common.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kiln::distributed {

class StoreTable {
 public:
  void set(const std::string& key, const std::string& value) { values_[key] = value; }
  // Null where there is none.
  const std::string* find(const std::string& key) const;
  // Throws DistStoreError for a value that is no number, or a sum that int64 does not hold.
  int64_t add(const std::string& key, int64_t amount);
  void append(const std::string& key, const std::string& value) { values_[key] += value; }
  std::string compare_set(const std::string& key, const std::string& expected,
                          const std::string& desired);
  bool has(const std::vector<std::string>& keys) const;
  bool erase(const std::string& key) { return values_.erase(key) > 0; }
  int64_t size() const { return static_cast<int64_t>(values_.size()); }

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace kiln::distributed
