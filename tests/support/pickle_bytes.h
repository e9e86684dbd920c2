// Pickles made opcode by opcode, and PyTorch files around them. Independent of Kiln's own writer.
#pragma once

#include <string>
#include <vector>

#include "tests/support/zip_bytes.h"

namespace kiln::test::pickle {

inline std::string number(int64_t n) {
  if (n >= 0 && n < 256) return "K" + little_endian(static_cast<uint64_t>(n), 1);
  return "\x8a\x08" + little_endian(static_cast<uint64_t>(n), 8);
}
inline std::string text(const std::string& s) { return "X" + little_endian(s.size(), 4) + s; }
inline std::string global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
inline std::string tuple(const std::vector<int64_t>& numbers) {
  std::string out = "(";
  for (const int64_t n : numbers) out += number(n);
  return out + "t";
}
inline std::string repeated(const std::string& part, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += part;
  return out;
}
// A whole pickle of protocol 2.
inline std::string whole(const std::string& body) { return "\x80\x02" + body + "."; }

// ('storage', torch.FloatStorage, key, 'cpu', elements) as a persistent id.
inline std::string storage(int64_t elements, const std::string& key = "0",
                           const std::string& type = "FloatStorage") {
  return "(" + text("storage") + global("torch", type) + text(key) + text("cpu") +
         number(elements) + "tQ";
}
// torch._utils._rebuild_tensor_v2(storage, offset, size, stride, False, OrderedDict())
inline std::string tensor(const std::string& storage, int64_t offset,
                          const std::vector<int64_t>& size, const std::vector<int64_t>& stride) {
  return global("torch._utils", "_rebuild_tensor_v2") + "(" + storage + number(offset) +
         tuple(size) + tuple(stride) + "\x89" + global("collections", "OrderedDict") + ")RtR";
}
// {name: value}
inline std::string dict(const std::string& name, const std::string& value) {
  return "}" + text(name) + value + "s";
}

// PyTorch's zip form, with one storage of `bytes` bytes.
inline std::string torch_zip(const std::string& pickle, const std::string& data = "",
                             bool deflate = false) {
  return zip_of({{"m/data.pkl", pickle, deflate},
                 {"m/byteorder", "little"},
                 {"m/data/0", data},
                 {"m/version", "3\n"}});
}
// The older form: five pickles, then each storage with its number of elements.
inline std::string torch_legacy(const std::string& pickle, const std::string& keys,
                                const std::string& data) {
  const std::string magic("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 12);
  return whole(magic) + whole("M\xe9\x03") + whole(dict("little_endian", "\x88")) + pickle + keys +
         data;
}

}  // namespace kiln::test::pickle
