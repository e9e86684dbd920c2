#include "kiln/distributed/store_table.h"

#include <algorithm>
#include <charconv>

#include "kiln/distributed/error.h"

namespace kiln::distributed {

const std::string* StoreTable::find(const std::string& key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

int64_t StoreTable::add(const std::string& key, int64_t amount) {
  int64_t sum = amount;
  if (const std::string* value = find(key)) {
    int64_t number = 0;
    const char* const end = value->data() + value->size();
    const auto parsed = std::from_chars(value->data(), end, number);
    if (parsed.ec != std::errc() || parsed.ptr != end) {
      throw_error<DistStoreError>("add: the value of the key '", key, "' is no number");
    }
    if (__builtin_add_overflow(number, amount, &sum)) {
      throw_error<DistStoreError>("add: the sum at the key '", key, "' is too large");
    }
  }
  set(key, std::to_string(sum));
  return sum;
}

std::string StoreTable::compare_set(const std::string& key, const std::string& expected,
                                    const std::string& desired) {
  const std::string* const value = find(key);
  if (value == nullptr ? !expected.empty() : *value != expected) {
    return value == nullptr ? expected : *value;
  }
  set(key, desired);
  return desired;
}

bool StoreTable::has(const std::vector<std::string>& keys) const {
  return std::ranges::all_of(keys, [this](const std::string& key) { return find(key) != nullptr; });
}

}  // namespace kiln::distributed
