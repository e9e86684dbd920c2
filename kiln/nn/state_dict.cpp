#include "kiln/nn/state_dict.h"

#include "kiln/core/error.h"

namespace kiln::nn {

StateDict::StateDict(std::initializer_list<Item> items) {
  for (const Item& item : items) set(item.first, item.second);
}

std::vector<std::string> StateDict::keys() const {
  std::vector<std::string> out;
  out.reserve(items_.size());
  for (const Item& item : items_) out.push_back(item.first);
  return out;
}

const Tensor* StateDict::find(std::string_view key) const {
  const auto found = index_.find(key);
  return found == index_.end() ? nullptr : &items_[found->second].second;
}

const Tensor& StateDict::at(std::string_view key) const {
  const Tensor* found = find(key);
  if (found == nullptr) throw_error<KeyError>("StateDict: no tensor is named '", key, "'");
  return *found;
}

Tensor& StateDict::operator[](std::string_view key) {
  const auto [place, inserted] = index_.try_emplace(std::string(key), items_.size());
  if (inserted) items_.emplace_back(place->first, Tensor());
  return items_[place->second].second;
}

bool StateDict::erase(std::string_view key) {
  const auto found = index_.find(key);
  if (found == index_.end()) return false;
  const size_t at = found->second;
  index_.erase(found);
  items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(at));
  for (auto& [name, place] : index_) {
    if (place > at) --place;
  }
  return true;
}

void StateDict::set_object(std::string_view key, std::any value) {
  objects_.insert_or_assign(std::string(key), std::move(value));
}

const std::any* StateDict::find_object(std::string_view key) const {
  const auto found = objects_.find(key);
  return found == objects_.end() ? nullptr : &found->second;
}

bool StateDict::erase_object(std::string_view key) {
  const auto found = objects_.find(key);
  if (found == objects_.end()) return false;
  objects_.erase(found);
  return true;
}

std::string to_string(const IncompatibleKeys& keys) {
  if (keys.empty()) return "<All keys matched successfully>";
  const auto list = [](const std::vector<std::string>& names) {
    std::string out = "[";
    for (const std::string& name : names) out += (out.size() > 1 ? ", '" : "'") + name + "'";
    return out + "]";
  };
  return concat("_IncompatibleKeys(missing_keys=", list(keys.missing_keys),
                ", unexpected_keys=", list(keys.unexpected_keys), ")");
}

}  // namespace kiln::nn
