#include "kiln/pt2/tree.h"

#include "kiln/core/utf8.h"
#include "kiln/pt2/fields.h"
#include "kiln/pt2/program.h"

namespace kiln::pt2 {

namespace {

// Keys as a list in JSON: of strings and integers.
void add_keys(const Json& keys, Tree& out) {
  for (const Json& key : list_of(keys, "the keys of a dict")) {
    if (const auto* number = key.as<int64_t>()) {
      out.keys.push_back(std::to_string(*number));
      out.is_integer.push_back(true);
      continue;
    }
    const auto* text = key.as<std::string>();
    if (text == nullptr) {
      throw_error<NotImplementedError>("a dict with ", printable(key.describe(), 60),
                                       " as a key; expected strings and integers");
    }
    out.keys.push_back(*text);
    out.is_integer.push_back(false);
  }
}

bool is_dict(const std::string& type) {
  return type == "builtins.dict" || type == "collections.OrderedDict" ||
         type == "torch.fx.immutable_collections.immutable_dict";
}
bool is_list(const std::string& type) {
  return type == "builtins.list" || type == "collections.deque" ||
         type == "torch.fx.immutable_collections.immutable_list";
}

Tree tree_of(const Json& spec, const Json* fields) {
  Tree out;
  const Json* type = find(spec, "type");
  const Json::Array& items = list_of(member(spec, "children_spec"), "children_spec");
  if (type == nullptr) {
    if (!items.empty()) throw_error<ValueError>("a leaf with items");
    return out;
  }
  out.type = text_of(*type, "type");
  const Json* given = find(spec, "context");
  const std::string context = given == nullptr ? "null" : text_of(*given, "context");
  if (is_dict(out.type)) {
    out.kind = Tree::Kind::dict;
    add_keys(decode_json(context), out);
  } else if (is_list(out.type)) {
    out.kind = Tree::Kind::list;
  } else if (out.type == "builtins.tuple" || out.type == "torch.Size") {
    out.kind = Tree::Kind::tuple;
  } else if (out.type == "collections.defaultdict") {
    out.kind = Tree::Kind::dict;
    add_keys(member(decode_json(context), "dict_context"), out);
  } else if (out.type == "collections.namedtuple") {
    out.kind = Tree::Kind::tuple;
    const Json name = decode_json(context);
    out.type = text_of(name, "the type of a named tuple");
    const Json* known = fields == nullptr ? nullptr : find(*fields, out.type.c_str());
    if (known == nullptr) throw_error<ValueError>("the fields of a named tuple are missing");
    add_keys(member(*known, "field_names"), out);
  } else {
    // A class that somebody registered: what it says of itself may be the names of its items.
    const Json keys = context.empty() ? Json() : decode_json(context);
    const auto* list = keys.as<Json::Array>();
    if (list == nullptr || list->size() != items.size()) {
      throw_error<NotImplementedError>("arguments or results of type '", printable(out.type, 80),
                                       "'; expected tuples, lists and dicts");
    }
    out.kind = Tree::Kind::dict;
    add_keys(keys, out);
  }
  if (!out.keys.empty() && out.keys.size() != items.size()) {
    throw_error<ValueError>("a container of ", items.size(), " items with ", out.keys.size(),
                            " keys");
  }
  for (const Json& item : items) out.items.push_back(tree_of(item, fields));
  return out;
}

}  // namespace

Tree read_tree(const Json& spec, const Json* fields) {
  const Json tree = decode_json(text_of(spec, "a tree"));
  const Json::Array& parts = list_of(tree, "a tree");
  if (parts.size() != 2) throw_error<ValueError>("a tree of ", parts.size(), " parts; expected 2");
  if (integer_of(parts[0], "the version of a tree") != 1) {
    throw_error<NotImplementedError>("trees of version ",
                                     integer_of(parts[0], "the version of a tree"), "; expected 1");
  }
  return tree_of(parts[1], fields);
}

}  // namespace kiln::pt2
