// Steps of optimizers over many parameters in one launch: kernels/optimizer.k.
//
// Note [Recorded formulas]: the formulas of optimizer_formulas.def are C++ over any kind of number.
// Here they run on numbers that write down what is done with them. What they write, without its
// constants, is the kernel's key; its text is made from that once; and the constants, which change
// from step to step, are an argument.
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "kiln/backend/gpu/nn.h"

namespace kiln::gpu {
namespace recorded {

enum class Op : char {
  add,
  sub,
  mul,
  div,
  scaled,
  plus,
  mul_add,
  scaled_add,
  root,
  magnitude,
  larger,
  nothing,
  pick,
  between,
};

// Instructions of four bytes: what is done with which three values. Values 0 to 5 are p, g and the
// state; instruction i makes value 6 + i, and takes its constants in order.
struct Program {
  std::string code;
  std::vector<double> constants;
};
constexpr int kInputs = 6;

// The program that is being written; formulas know nothing of it.
thread_local Program* program = nullptr;

struct Number {
  char value = 0;
};

Number write(Op op, Number a, Number b = {}, Number c = {}) {
  program->code.append({static_cast<char>(op), a.value, b.value, c.value});
  return {static_cast<char>(kInputs - 1 + program->code.size() / 4)};
}
void constant(double c) { program->constants.push_back(c); }

Number add(Number a, Number b) { return write(Op::add, a, b); }
Number sub(Number a, Number b) { return write(Op::sub, a, b); }
Number mul(Number a, Number b) { return write(Op::mul, a, b); }
Number div(Number a, Number b) { return write(Op::div, a, b); }
Number scaled(Number a, double c) {
  constant(c);
  return write(Op::scaled, a);
}
Number plus(Number a, double c) {
  constant(c);
  return write(Op::plus, a);
}
Number mul_add(Number a, Number b, Number c) { return write(Op::mul_add, a, b, c); }
Number scaled_add(Number a, double c, Number b) {
  constant(c);
  return write(Op::scaled_add, a, b);
}
Number root(Number a) { return write(Op::root, a); }
Number magnitude(Number a) { return write(Op::magnitude, a); }
Number larger(Number a, Number b) { return write(Op::larger, a, b); }
Number nothing(Number) { return write(Op::nothing, {}); }
Number pick(Number x, Number a, Number b) { return write(Op::pick, x, a, b); }
Number between(Number a, double low, double high) {
  constant(low);
  constant(high);
  return write(Op::between, a);
}

#define KILN_FORMULA
#include "kiln/backend/optimizer_formulas.def"
#undef KILN_FORMULA

// A whole step: the instructions, and behind them which values p and the state become.
Program record(const OptimizerStep& step) {
  Program out;
  program = &out;
  std::array<Number, kInputs> x;
  for (int i = 0; i < kInputs; ++i) x[static_cast<size_t>(i)].value = static_cast<char>(i);
  std::visit(
      [&]<class Step>(const Step& rule) {
        const Formula<Step> formula(rule);
        formula(x[0], x[1], x[2], x[3], x[4], x[5]);
      },
      step);
  program = nullptr;
  for (const Number& each : x) out.code += each.value;
  return out;
}

std::string name_of(int value, size_t slots) {
  static constexpr const char* kNames[] = {"p", "g", "s0", "s1", "s2", "s3"};
  // A formula hands slots that it does not have from place to place.
  if (value >= 2 && value < kInputs && static_cast<size_t>(value - 2) >= slots) return "(A)0";
  return value < kInputs ? kNames[value] : concat("v", value);
}

// C of what was written.
std::string text_of(const std::string& code, size_t slots) {
  std::string out;
  int constants = 0;
  const size_t count = (code.size() - kInputs) / 4;
  const auto next = [&] { return concat("(A)c.at[", constants++, "]"); };
  for (size_t i = 0; i < count; ++i) {
    const std::string a = name_of(code[4 * i + 1], slots);
    const std::string b = name_of(code[4 * i + 2], slots);
    const std::string c = name_of(code[4 * i + 3], slots);
    std::string y;
    switch (static_cast<Op>(code[4 * i])) {
      case Op::add:
        y = concat(a, " + ", b);
        break;
      case Op::sub:
        y = concat(a, " - ", b);
        break;
      case Op::mul:
        y = concat(a, " * ", b);
        break;
      case Op::div:
        y = concat(a, " / ", b);
        break;
      case Op::scaled:
        y = concat(a, " * ", next());
        break;
      case Op::plus:
        y = concat(a, " + ", next());
        break;
      case Op::mul_add:
        y = concat(a, " * ", b, " + ", c);
        break;
      case Op::scaled_add:
        y = concat(a, " * ", next(), " + ", b);
        break;
      case Op::root:
        y = concat("sqrt(", a, ")");
        break;
      case Op::magnitude:
        y = concat("fabs(", a, ")");
        break;
      case Op::larger:
        y = concat(a, " != ", a, " || ", a, " > ", b, " ? ", a, " : ", b);
        break;
      case Op::nothing:
        y = "(A)0";
        break;
      case Op::pick:
        y = concat(a, " > (A)0 ? ", b, " : ", c);
        break;
      case Op::between: {
        const std::string low = next();
        const std::string high = next();
        y = concat(a, " < ", low, " ? ", low, " : ", a, " > ", high, " ? ", high, " : ", a);
        break;
      }
    }
    out += concat("A v", kInputs + static_cast<int>(i), " = ", y, "; ");
  }
  // All are read before one is written over.
  const char* results = code.data() + 4 * count;
  out += concat("A p_new = ", name_of(results[0], slots), "; ");
  for (size_t k = 0; k < slots; ++k) {
    out += concat("A s", k, "_new = ", name_of(results[2 + k], slots), "; ");
  }
  out += "p = p_new; ";
  for (size_t k = 0; k < slots; ++k) out += concat("s", k, " = s", k, "_new; ");
  return out;
}

}  // namespace recorded

namespace {

constexpr size_t kMost = 8;  // parameters of a launch

struct StepOperands {
  H p;
  H g;
  std::array<H, 4> state;
};

// The macros of optimizer.k for `count` parameters.
std::string step_defines(const StepOperands& x, const recorded::Program& program, size_t count,
                         size_t slots, int64_t vector) {
  std::string pointers;
  const auto chosen = [&](const std::string& type, const std::string& name) {
    std::string list;
    for (size_t k = 0; k < count; ++k) {
      pointers += concat(", ", type, " ", name, "_", k);
      list += k + 1 < count ? concat("k == ", k, " ? ", name, "_", k, " : ") : concat(name, "_", k);
    }
    return concat(type, " ", name, "_memory = ", list, "; ");
  };
  std::string choose = chosen("GLOBAL MEM(IN0)*", "p");
  choose += chosen("GLOBAL const MEM(IN1)*", "g");
  std::string reads;
  std::string takes;
  std::string gives;
  std::string writes;
  for (size_t s = 0; s < slots; ++s) {
    choose += chosen("GLOBAL MEM(IN2)*", concat("s", s));
    const std::string pack =
        concat("(JOIN(NAME, _in2), s", s, "_pack, s", s, "_memory, c.offset[k][", s + 2, "] + i) ");
    reads += "READ_PACK" + pack;
    takes += concat("A s", s, " = LOAD(IN2, s", s, "_pack.v, e); ");
    gives += concat("SAVE(IN2, s", s, "_pack.v, e, s", s, "); ");
    writes += "WRITE_PACK" + pack;
  }
  const DType dtype = x.p->dtype();
  return define("IN0", dialect_name(dtype)) + define("IN1", dialect_name(x.g->dtype())) +
         define("IN2", dialect_name(slots == 0 ? dtype : x.state[0]->dtype())) +
         define("SCALAR", scalar_type(dtype)) + arithmetic(dtype) +
         define("COUNT", std::to_string(count)) + define("SLOTS", std::to_string(slots)) +
         define("CONSTANTS", std::to_string(std::max<size_t>(program.constants.size(), 1))) +
         define("POINTERS", pointers) + define("CHOOSE", choose) + define("READ_STATE", reads) +
         define("TAKE_STATE", takes) + define("GIVE_STATE", gives) +
         define("VECTOR", std::to_string(vector)) +
         define("RULE", recorded::text_of(program.code, slots)) + define("WRITE_STATE", writes);
}

// Elements that a work-item takes at once.
int64_t vector_of(std::span<const StepOperands> list, size_t slots) {
  const StepOperands& first = list[0];
  int64_t vector = std::min(pack_of(first.p->dtype()), pack_of(first.g->dtype()));
  if (slots > 0) vector = std::min(vector, pack_of(first.state[0]->dtype()));
  int64_t elements = 0;
  for (const StepOperands& x : list) elements += x.p->numel();
  if (elements < kFewElements) return 1;
  for (const StepOperands& x : list) {
    bool fits = x.p->offset() % vector == 0 && x.g->offset() % vector == 0;
    for (size_t s = 0; s < slots; ++s) fits = fits && x.state[s]->offset() % vector == 0;
    if (!fits) return 1;
  }
  return vector;
}

void launch_step(std::span<const StepOperands> list, const recorded::Program& program,
                 size_t slots) {
  const StepOperands& first = list[0];
  const DType dtype = first.p->dtype();
  const size_t count = list.size() == 1 ? 1 : kMost;
  const int64_t vector = vector_of(list, slots);
  const auto defines = [&] { return step_defines(first, program, count, slots, vector); };
  const Kernel kernel{
      .file = "optimizer",
      .parts = {Literal::kept(program.code)},
      .choice = choice(dtype, first.g->dtype(), slots == 0 ? dtype : first.state[0]->dtype(), count,
                       slots, vector),
      .defines = defines};
  // The struct _step: places that are not used are empty.
  std::vector<int64_t> begins(2 * count + 1, 0);
  std::vector<int64_t> offsets(count * (slots + 2), 0);
  int64_t items = 0;
  for (size_t k = 0; k < count; ++k) {
    const int64_t size = k < list.size() ? list[k].p->numel() : 0;
    items += (size + vector - 1) / vector;
    begins[k + 1] = items;
    begins[count + 1 + k] = size;
    if (k >= list.size()) continue;
    int64_t* offset = offsets.data() + k * (slots + 2);
    offset[0] = list[k].p->offset();
    offset[1] = list[k].g->offset();
    for (size_t s = 0; s < slots; ++s) offset[s + 2] = list[k].state[s]->offset();
  }
  const size_t numbers = std::max<size_t>(program.constants.size(), 1);
  const size_t head = (begins.size() + offsets.size()) * sizeof(int64_t);
  const size_t each = dtype == DType::f64 ? 8 : 4;
  std::vector<std::byte> bytes(head + (numbers * each + 7) / 8 * 8);
  std::memcpy(bytes.data(), begins.data(), begins.size() * sizeof(int64_t));
  std::memcpy(bytes.data() + begins.size() * sizeof(int64_t), offsets.data(),
              offsets.size() * sizeof(int64_t));
  for (size_t i = 0; i < program.constants.size(); ++i) {
    const double wide = program.constants[i];
    const auto narrow = static_cast<float>(wide);
    std::memcpy(bytes.data() + head + i * each,
                each == 8 ? static_cast<const void*>(&wide) : &narrow, each);
  }
  std::vector<Argument> arguments = {{Argument::Kind::bytes, bytes.data(), bytes.size()}};
  const auto add = [&](auto&& tensor_of) {
    for (size_t k = 0; k < count; ++k) {
      arguments.push_back(
          Argument::memory(tensor_of(list[std::min(k, list.size() - 1)])->storage()->memory()));
    }
  };
  add([](const StepOperands& x) -> const H& { return x.p; });
  add([](const StepOperands& x) -> const H& { return x.g; });
  for (size_t s = 0; s < slots; ++s) {
    add([s](const StepOperands& x) -> const H& { return x.state[s]; });
  }
  first.p->gpu().launch(kernel, static_cast<size_t>(items), arguments);
}

bool belong_together(const StepOperands& a, const StepOperands& b, size_t slots) {
  return a.p->dtype() == b.p->dtype() && a.g->dtype() == b.g->dtype() &&
         a.p->device() == b.p->device() &&
         (slots == 0 || a.state[0]->dtype() == b.state[0]->dtype());
}

}  // namespace

bool optimizer_step(std::span<H> params, std::span<const H> grads, std::span<H> state,
                    const OptimizerStep& step) {
  const size_t slots = slots_of(step);
  std::vector<StepOperands> all;
  for (size_t i = 0; i < params.size(); ++i) {
    const bool last = is_channels_last(*params[i]);
    const auto fits = [last](const H& t) {
      return last ? is_channels_last(*t) : t->is_contiguous();
    };
    StepOperands x{params[i], fits(grads[i]) ? grads[i] : packed(grads[i], last), {}};
    if (!fits(x.p)) return false;
    for (size_t s = 0; s < slots; ++s) {
      x.state[s] = state[s * params.size() + i];
      if (!fits(x.state[s]) || x.state[s]->dtype() != x.state[0]->dtype()) return false;
    }
    if (x.p->numel() != 0) all.push_back(x);
  }
  const recorded::Program program = recorded::record(step);
  for (size_t begin = 0; begin < all.size();) {
    size_t end = begin + 1;
    while (end < all.size() && end - begin < kMost &&
           belong_together(all[begin], all[end], slots)) {
      ++end;
    }
    launch_step(std::span(all).subspan(begin, end - begin), program, slots);
    begin = end;
  }
  for (const H& p : params) p->storage()->bump_version();
  for (const H& s : state) s->storage()->bump_version();
  return true;
}

}  // namespace kiln::gpu
