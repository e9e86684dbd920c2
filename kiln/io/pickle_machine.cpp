#include "kiln/io/pickle_machine.h"

#include <bit>

#include "kiln/core/error.h"
#include "kiln/core/utf8.h"

namespace kiln::io::detail {

namespace {

constexpr uint64_t kLongestInteger = 1024;  // bytes
constexpr int kNewestProtocol = 5;
constexpr size_t kMostArguments = 16;
// A node of the memo's table and its share of the buckets, while these grow.
constexpr uint64_t kMemoEntry = 56;

// Decimal digits of the little-endian two's complement number in `bytes`.
std::string decimal_of(const std::string& bytes) {
  const bool negative = (static_cast<uint8_t>(bytes.back()) & 0x80) != 0;
  std::string magnitude = bytes;
  if (negative) {
    unsigned carry = 1;
    for (char& c : magnitude) {
      const unsigned sum = (~static_cast<unsigned>(static_cast<uint8_t>(c)) & 0xff) + carry;
      c = static_cast<char>(sum);
      carry = sum >> 8;
    }
  }
  std::vector<uint32_t> digits{0};  // base 10^9, lowest first
  for (size_t i = magnitude.size(); i-- > 0;) {
    uint64_t carry = static_cast<uint8_t>(magnitude[i]);
    for (uint32_t& d : digits) {
      carry += static_cast<uint64_t>(d) << 8;
      d = static_cast<uint32_t>(carry % 1'000'000'000);
      carry /= 1'000'000'000;
    }
    if (carry > 0) digits.push_back(static_cast<uint32_t>(carry));
  }
  std::string out = (negative ? "-" : "") + std::to_string(digits.back());
  for (size_t i = digits.size() - 1; i-- > 0;) {
    const std::string part = std::to_string(digits[i]);
    out += std::string(9 - part.size(), '0') + part;
  }
  return out;
}

}  // namespace

NodeRef PickleMachine::run() {
  while (step(input_.byte())) {
  }
  const NodeRef result = pop();
  if (!stack_.empty() || !marks_.empty()) {
    input_.fail("it leaves objects behind", concat(stack_.size(), " on the stack"), "one object");
  }
  return result;
}

bool PickleMachine::step(uint8_t opcode) {
  if (opcode == '.') return false;
  if (step_value(opcode) || step_container(opcode) || step_object(opcode)) return true;
  const bool protocol0 =
      std::string("FILPSVgp").find(static_cast<char>(opcode)) != std::string::npos;
  input_.fail(protocol0 ? "it uses pickle protocol 0" : "it has an unknown opcode",
              concat("opcode ", static_cast<unsigned>(opcode)), "pickle protocol 2 to 5");
}

// Opcodes that push a plain value.
bool PickleMachine::step_value(uint8_t opcode) {
  switch (opcode) {
    case 0x80:  // PROTO
      if (const uint8_t version = input_.byte(); version > kNewestProtocol) {
        input_.fail("its protocol is unknown", concat(static_cast<unsigned>(version)),
                    concat("at most ", kNewestProtocol));
      }
      return true;
    case 0x95:  // FRAME: how far a reader may read ahead
      if (const uint64_t frame = input_.number(8); frame > input_.left()) {
        input_.fail("a frame is longer than what is left", concat(frame, " bytes"));
      }
      return true;
    case 'N':
      push(arena_.none());
      return true;
    case 0x88:  // NEWTRUE
    case 0x89:  // NEWFALSE
      push(arena_.boolean(opcode == 0x88));
      return true;
    case 'J':  // BININT
      push(arena_.integer(static_cast<int32_t>(input_.number(4))));
      return true;
    case 'K':  // BININT1
      push(arena_.integer(static_cast<int64_t>(input_.number(1))));
      return true;
    case 'M':  // BININT2
      push(arena_.integer(static_cast<int64_t>(input_.number(2))));
      return true;
    case 0x8a:  // LONG1
      push_long(input_.number(1));
      return true;
    case 0x8b:  // LONG4
      push_long(input_.number(4));
      return true;
    case 'G': {  // BINFLOAT, the one big-endian number
      uint64_t bits = 0;
      for (int i = 0; i < 8; ++i) bits = bits << 8 | input_.byte();
      push_node(std::bit_cast<double>(bits));
      return true;
    }
    case 'X':  // BINUNICODE
      push_text(input_.number(4));
      return true;
    case 0x8c:  // SHORT_BINUNICODE
      push_text(input_.number(1));
      return true;
    case 0x8d:  // BINUNICODE8
      push_text(input_.number(8));
      return true;
    case 'T':  // BINSTRING
      push_python2_text(input_.number(4));
      return true;
    case 'U':  // SHORT_BINSTRING
      push_python2_text(input_.number(1));
      return true;
    case 'B':   // BINBYTES
    case 'C':   // SHORT_BINBYTES
    case 0x8e:  // BINBYTES8
    case 0x96:  // BYTEARRAY8
      push_bytes(input_.number(opcode == 'B' ? 4 : opcode == 'C' ? 1 : 8));
      return true;
    default:
      return false;
  }
}

// Opcodes that build containers, and those that move the stack and the memo.
bool PickleMachine::step_container(uint8_t opcode) {
  switch (opcode) {
    case '(':
      arena_.grow(marks_, 1);
      marks_.push_back(stack_.size());
      return true;
    case '0':
      pop();
      return true;
    case '1':
      pop_mark();
      return true;
    case '2':
      push(top());
      return true;
    case ')':
      push_node(TupleNode{});
      return true;
    case ']':
      push_node(ListNode{});
      return true;
    case '}':
      push_node(DictNode{});
      return true;
    case 0x8f:  // EMPTY_SET
      push_node(SetNode{});
      return true;
    case 't':
      push_items(TupleNode{pop_mark()});
      return true;
    case 'l':
      push_items(ListNode{pop_mark()});
      return true;
    case 0x91:  // FROZENSET
      push_items(SetNode{pop_mark(), true});
      return true;
    case 'd': {
      const std::vector<NodeRef> items = pop_mark();
      push_node(DictNode{});
      set_items(items);
      return true;
    }
    case 0x85:  // TUPLE1, 2, 3
    case 0x86:
    case 0x87:
      push_tuple(opcode - 0x84u);
      return true;
    case 'a':
      append({pop()});
      return true;
    case 'e':
    case 0x90:  // ADDITEMS
      append(pop_mark());
      return true;
    case 's': {
      const NodeRef value = pop();
      const NodeRef key = pop();
      set_items({key, value});
      return true;
    }
    case 'u':
      set_items(pop_mark());
      return true;
    case 'q':
      remember(input_.number(1));
      return true;
    case 'r':
      remember(input_.number(4));
      return true;
    case 0x94:  // MEMOIZE
      remember(memo_.size());
      return true;
    case 'h':
      recall(input_.number(1));
      return true;
    case 'j':
      recall(input_.number(4));
      return true;
    default:
      return false;
  }
}

// Opcodes that name something, or call it.
bool PickleMachine::step_object(uint8_t opcode) {
  switch (opcode) {
    case 'c': {
      const std::string module = input_.line();
      const std::string name = input_.line();
      push(objects_.global(arena_, module, name));
      return true;
    }
    case 0x93: {  // STACK_GLOBAL
      const std::string name = text_of(pop(), "name");
      const std::string module = text_of(pop(), "module");
      push(objects_.global(arena_, module, name));
      return true;
    }
    case 'R':     // REDUCE
    case 0x81: {  // NEWOBJ
      const NodeRef arguments = pop();
      const NodeRef function = pop();
      push(call(function, arguments));
      return true;
    }
    case 'Q': {  // BINPERSID
      const NodeRef id = pop();
      push(objects_.persistent(arena_, id));
      return true;
    }
    case 'b':
      build();
      return true;
    case 0x92:  // NEWOBJ_EX
      pop();
      pop();
      refuse("NEWOBJ_EX", describe(arena_, pop()));
    case 'i': {  // INST
      const std::string module = input_.line();
      refuse("INST", "'" + printable(module + "." + input_.line()) + "'");
    }
    case 'o': {  // OBJ
      const std::vector<NodeRef> items = pop_mark();
      refuse("OBJ", items.empty() ? "nothing" : describe(arena_, items[0]));
    }
    case 0x82:  // EXT1, 2, 4: names from a table of the interpreter
    case 0x83:
    case 0x84:
      refuse("EXT", "a registered extension");
    case 0x97:  // NEXT_BUFFER
    case 0x98:  // READONLY_BUFFER
      refuse("NEXT_BUFFER", "data outside the file");
    default:
      return false;
  }
}

void PickleMachine::refuse(const char* opcode, const std::string& what) {
  throw_error<IoError>(input_.file().op(), ": '", input_.file().path(),
                       "' is refused: its pickle asks to run code or make an object (", opcode,
                       "); got ", what,
                       "; expected tensors, containers and plain values (nothing from a file is "
                       "ever run)");
}

NodeRef PickleMachine::pop() {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) {
    input_.fail("it takes from an empty stack", "nothing");
  }
  const NodeRef ref = stack_.back();
  stack_.pop_back();
  return ref;
}

NodeRef& PickleMachine::top() {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) {
    input_.fail("it takes from an empty stack", "nothing");
  }
  return stack_.back();
}

std::vector<NodeRef> PickleMachine::pop_mark() {
  if (marks_.empty()) input_.fail("it takes from an empty stack", "no mark");
  const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  // Containers keep them: charged here, once.
  arena_.charge(static_cast<uint64_t>(stack_.end() - begin) * sizeof(NodeRef));
  std::vector<NodeRef> out(begin, stack_.end());
  stack_.erase(begin, stack_.end());
  marks_.pop_back();
  return out;
}

void PickleMachine::push_tuple(size_t items) {
  TupleNode tuple;
  tuple.items.resize(items);
  for (size_t i = items; i-- > 0;) tuple.items[i] = pop();
  push_items(std::move(tuple));
}

void PickleMachine::push_long(uint64_t bytes) {
  if (bytes > kLongestInteger) {
    input_.fail("an integer is too long", concat(bytes, " bytes"),
                concat("at most ", kLongestInteger));
  }
  const std::string text = input_.take(bytes);
  if (bytes > 8) {
    // Its digits cost the square of its length in time.
    arena_.charge(bytes * bytes / 16);
    push_node(PickleBigInt{decimal_of(text)}, 3 * bytes);
    return;
  }
  uint64_t value = 0;
  for (size_t i = text.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(text[i]);
  if (!text.empty() && text.size() < 8 && (text.back() & 0x80) != 0) {
    value |= ~uint64_t{0} << (8 * text.size());
  }
  push(arena_.integer(static_cast<int64_t>(value)));
}

void PickleMachine::push_text(uint64_t bytes) {
  std::string text = input_.take(bytes);
  if (!is_utf8(text)) input_.fail("a text is not UTF-8", "'" + printable(text) + "'", "UTF-8");
  push_node(std::move(text), bytes);
}

// A str of Python 2, of which nobody knows whether it is text.
void PickleMachine::push_python2_text(uint64_t bytes) {
  std::string text = input_.take(bytes);
  if (is_utf8(text)) {
    push_node(std::move(text), bytes);
  } else {
    push_node(PickleBytes{std::move(text)}, bytes);
  }
}

void PickleMachine::push_bytes(uint64_t bytes) {
  push_node(PickleBytes{input_.take(bytes)}, bytes);
}

void PickleMachine::remember(uint64_t place) {
  const NodeRef value = top();
  const auto [found, is_new] = memo_.insert_or_assign(place, value);
  static_cast<void>(found);
  if (is_new) arena_.charge(kMemoEntry);
}

void PickleMachine::recall(uint64_t place) {
  const auto found = memo_.find(place);
  if (found == memo_.end()) {
    input_.fail("it recalls what it never stored", concat("memo ", place));
  }
  push(found->second);
}

void PickleMachine::append(const std::vector<NodeRef>& items) {
  const NodeRef target = top();
  auto* list = arena_.get<ListNode>(target);
  auto* set = arena_.get<SetNode>(target);
  if (list == nullptr && set == nullptr) {
    input_.fail("it appends to what is no list", describe(arena_, target), "a list");
  }
  auto& to = list != nullptr ? list->items : set->items;
  arena_.grow(to, items.size());
  to.insert(to.end(), items.begin(), items.end());
}

void PickleMachine::set_items(const std::vector<NodeRef>& items) {
  auto* dict = arena_.get<DictNode>(top());
  if (dict == nullptr || items.size() % 2 != 0) {
    input_.fail("it sets items of what is no dict",
                dict == nullptr ? describe(arena_, top()) : "a key without a value", "a dict");
  }
  arena_.grow(dict->items, items.size() / 2);
  for (size_t i = 0; i < items.size(); i += 2) dict->items.emplace_back(items[i], items[i + 1]);
}

// Sets an object's attributes. An OrderedDict may have some; nothing else may.
void PickleMachine::build() {
  const NodeRef state = pop();
  const NodeRef target = top();
  auto* dict = arena_.get<DictNode>(target);
  if (dict != nullptr && arena_.get<DictNode>(state) != nullptr) {
    dict->attributes = state;
  } else if (!objects_.build(arena_, target, state)) {
    refuse("BUILD", describe(arena_, target));
  }
}

NodeRef PickleMachine::call(NodeRef function, NodeRef arguments) {
  const auto* global = arena_.get<GlobalNode>(function);
  const auto* tuple = arena_.get<TupleNode>(arguments);
  if (global == nullptr) refuse("REDUCE", describe(arena_, function));
  if (tuple == nullptr) {
    input_.fail("it calls with no tuple of arguments", describe(arena_, arguments), "a tuple");
  }
  if (tuple->items.size() > kMostArguments) {
    input_.fail("it calls with too many arguments", concat(tuple->items.size()),
                concat("at most ", kMostArguments));
  }
  // Copies: making objects moves the arena's.
  return objects_.reduce(arena_, std::string(global->name), std::vector<NodeRef>(tuple->items));
}

std::string PickleMachine::text_of(NodeRef ref, const char* what) {
  const auto* text = arena_.get<std::string>(ref);
  if (text == nullptr || text->size() > 400) {
    input_.fail(concat("a ", what, " is no text"), describe(arena_, ref), "a short text");
  }
  return *text;
}

}  // namespace kiln::io::detail
