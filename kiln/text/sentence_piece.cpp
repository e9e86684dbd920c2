#include "kiln/text/sentence_piece.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <queue>

#include "kiln/core/error.h"
#include "kiln/io/input_file.h"
#include "kiln/text/protobuf.h"

namespace kiln::text {

// What a file says of training and of normalizing.
struct SentencePiece::Spec {
  uint64_t model_type = 1;
  bool byte_fallback = false;
  std::string bos = "<s>", eos = "</s>", pad = "<pad>", unknown_text = " \xe2\x81\x87 ";
};

namespace {

constexpr uint64_t kMostModelBytes = uint64_t{256} << 20;
// A model has fewer pieces than this; a piece fewer bytes.
constexpr size_t kMostPieces = size_t{1} << 24;
constexpr size_t kLongestPiece = 512;
// What an unknown letter costs more than the unlikeliest piece.
constexpr float kUnknownPenalty = 10.0F;

float float_of(const Field& field) {
  return std::bit_cast<float>(static_cast<uint32_t>(field.value));
}

SentencePiece::Piece read_piece(std::string_view message, const std::string& subject) {
  SentencePiece::Piece piece;
  Fields fields(message, subject);
  for (Field field; fields.next(field);) {
    if (field.number == 1 && field.is_bytes) piece.text = field.bytes;
    if (field.number == 2 && !field.is_bytes) piece.score = float_of(field);
    if (field.number == 3 && !field.is_bytes) {
      if (field.value < 1 || field.value > 6) {
        throw_error<IoError>(subject, ": a piece has the unknown type ", field.value);
      }
      piece.kind = static_cast<SentencePiece::Kind>(field.value);
    }
  }
  if (piece.text.empty() || piece.text.size() > kLongestPiece) {
    throw_error<IoError>(subject, ": a piece must have from 1 to ", kLongestPiece, " bytes; got ",
                         piece.text.size());
  }
  if (std::isnan(piece.score)) throw_error<IoError>(subject, ": a piece has the score NaN");
  return piece;
}

void read_normalizer(std::string_view message, const std::string& subject, Normalizer& into) {
  Fields fields(message, subject);
  for (Field field; fields.next(field);) {
    if (field.number == 2 && field.is_bytes && !into.set_map(field.bytes)) {
      throw_error<IoError>(subject, ": its map of letters is cut off");
    }
    if (field.is_bytes) continue;
    if (field.number == 3) into.add_dummy_prefix = field.value != 0;
    if (field.number == 4) into.remove_extra_whitespaces = field.value != 0;
    if (field.number == 5) into.escape_whitespaces = field.value != 0;
  }
}

}  // namespace

SentencePiece SentencePiece::from_file(const std::string& path) {
  const std::string bytes = io::InputFile("SentencePiece", path).read_whole(kMostModelBytes);
  return from_bytes(bytes, concat("SentencePiece: '", path, "'"));
}

SentencePiece SentencePiece::from_bytes(std::string_view bytes, const std::string& subject) {
  SentencePiece out;
  Spec spec;
  const auto read_trainer = [&](std::string_view message) {
    Fields fields(message, subject);
    for (Field field; fields.next(field);) {
      if (field.is_bytes) {
        if (field.number == 44) spec.unknown_text = field.bytes;
        if (field.number == 46) spec.bos = field.bytes;
        if (field.number == 47) spec.eos = field.bytes;
        if (field.number == 48) spec.pad = field.bytes;
      } else {
        if (field.number == 3) spec.model_type = field.value;
        if (field.number == 24) out.normalizer_.suffix = field.value != 0;
        if (field.number == 35) spec.byte_fallback = field.value != 0;
      }
    }
  };
  Fields fields(bytes, subject);
  for (Field field; fields.next(field);) {
    if (!field.is_bytes) continue;
    if (field.number == 1) {
      if (out.pieces_.size() >= kMostPieces) throw_error<IoError>(subject, ": too many pieces");
      out.pieces_.push_back(read_piece(field.bytes, subject));
    }
    if (field.number == 2) read_trainer(field.bytes);
    if (field.number == 3) read_normalizer(field.bytes, subject, out.normalizer_);
  }
  out.index(subject, spec);
  return out;
}

void SentencePiece::index(const std::string& subject, const Spec& spec) {
  if (pieces_.empty()) throw_error<IoError>(subject, ": holds no pieces");
  if (spec.model_type != 1 && spec.model_type != 2) {
    throw_error<NotImplementedError>(subject, ": models of type ", spec.model_type,
                                     " are not read; expected 1 (unigram) or 2 (BPE)");
  }
  is_bpe_ = spec.model_type == 2;
  unknown_text_ = spec.unknown_text;
  unknown_ = -1;
  least_ = std::numeric_limits<float>::max();
  most_ = std::numeric_limits<float>::min();  // above 0, as the package begins
  std::vector<int64_t> bytes(256, -1);
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const Piece& piece = pieces_[i];
    const auto id = static_cast<int64_t>(i);
    const bool is_word = piece.kind == Kind::normal || piece.kind == Kind::user_defined ||
                         piece.kind == Kind::unused;
    if (!(is_word ? words_ : reserved_).emplace(piece.text, id).second) {
      throw_error<IoError>(subject, ": piece ", i, " occurs twice");
    }
    if (is_word) longest_ = std::max(longest_, piece.text.size());
    if (piece.kind == Kind::normal) {
      least_ = std::min(least_, piece.score);
      most_ = std::max(most_, piece.score);
    }
    if (piece.kind == Kind::user_defined) normalizer_.user_defined.push_back(piece.text);
    if (piece.kind == Kind::unknown) {
      if (unknown_ >= 0) throw_error<IoError>(subject, ": has two unknown pieces");
      unknown_ = id;
    }
    if (piece.kind == Kind::byte) {
      // "<0x0A>"
      const auto digit = [&](size_t at) {
        const char c = piece.text[at];
        return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
      };
      if (piece.text.size() != 6 || !piece.text.starts_with("<0x") || piece.text[5] != '>' ||
          digit(3) < 0 || digit(4) < 0) {
        throw_error<IoError>(subject, ": piece ", i, " stands for no byte");
      }
      bytes[static_cast<size_t>(16 * digit(3) + digit(4))] = id;
    }
  }
  if (unknown_ < 0) throw_error<IoError>(subject, ": has no unknown piece");
  if (spec.byte_fallback) {
    if (std::find(bytes.begin(), bytes.end(), -1) != bytes.end()) {
      throw_error<IoError>(subject, ": lacks pieces for some bytes");
    }
    bytes_ = std::move(bytes);
  }
  normalizer_.prepare();
  bos_ = control(spec.bos);
  eos_ = control(spec.eos);
  pad_ = control(spec.pad);
}

int64_t SentencePiece::control(std::string_view text) const {
  const auto found = reserved_.find(text);
  return found != reserved_.end() &&
                 pieces_[static_cast<size_t>(found->second)].kind == Kind::control
             ? found->second
             : -1;
}

const SentencePiece::Piece& SentencePiece::piece(int64_t id) const {
  if (id < 0 || id >= size()) {
    throw_error<IndexError>("SentencePiece: there is no token ", id, "; there are ", size());
  }
  return pieces_[static_cast<size_t>(id)];
}

std::optional<int64_t> SentencePiece::find(std::string_view text) const {
  for (const auto* names : {&reserved_, &words_}) {
    if (const auto found = names->find(text); found != names->end()) return found->second;
  }
  return std::nullopt;
}

int64_t SentencePiece::id_of(std::string_view text) const { return find(text).value_or(unknown_); }

std::vector<SentencePiece::Word> SentencePiece::unigram(std::string_view text) const {
  // The best way to each place: where its last word starts, and its score.
  struct Way {
    float score = 0;
    int64_t start = -1;
    int64_t id = -1;
  };
  std::vector<Way> best(text.size() + 1);
  const double unknown_score = least_ - kUnknownPenalty;
  const auto offer = [&](size_t start, size_t end, int64_t id, double score) {
    Way& way = best[end];
    const double total = score + static_cast<double>(best[start].score);
    if (way.start < 0 || total > static_cast<double>(way.score)) {
      way = {static_cast<float>(total), static_cast<int64_t>(start), id};
    }
  };
  for (size_t start = 0; start < text.size();) {
    const size_t letter = std::max<size_t>(letter_length(text.substr(start)), 1);
    bool alone = false;
    for (size_t length = 1; length <= std::min(longest_, text.size() - start); ++length) {
      const auto found = words_.find(text.substr(start, length));
      if (found == words_.end()) continue;
      const Piece& piece = pieces_[static_cast<size_t>(found->second)];
      if (piece.kind == Kind::unused) continue;
      // What a user has defined is likelier than anything.
      const double score = piece.kind == Kind::user_defined
                               ? static_cast<double>(static_cast<float>(length) * most_) - 0.1
                               : static_cast<double>(piece.score);
      offer(start, start + length, found->second, score);
      alone |= length == letter;
    }
    if (!alone) offer(start, start + letter, unknown_, unknown_score);
    start += letter;
  }
  std::vector<Word> out;
  for (size_t end = text.size(); end > 0;) {
    const auto start = static_cast<size_t>(best[end].start);
    out.push_back({text.substr(start, end - start), best[end].id});
    end = start;
  }
  std::reverse(out.begin(), out.end());
  return out;
}

std::vector<SentencePiece::Word> SentencePiece::merged(std::string_view text) const {
  struct Symbol {
    std::string_view text;
    int64_t before, after;
    bool fixed;  // what a user has defined is merged with nothing
  };
  struct Pair {
    float score;
    int64_t left, right;
    size_t size;
    bool operator<(const Pair& other) const {
      return score != other.score ? score < other.score : left > other.left;
    }
  };
  std::vector<Symbol> symbols;
  for (size_t at = 0; at < text.size();) {
    size_t length = 0;
    for (const std::string& word : normalizer_.user_defined) {
      if (text.substr(at).starts_with(word)) {
        length = word.size();
        break;
      }
    }
    const bool fixed = length > 0;
    if (!fixed) length = std::max<size_t>(letter_length(text.substr(at)), 1);
    const auto i = static_cast<int64_t>(symbols.size());
    symbols.push_back({text.substr(at, length), i - 1, i + 1, fixed});
    at += length;
  }
  if (symbols.empty()) return {};
  symbols.back().after = -1;
  const auto symbol = [&](int64_t i) -> Symbol& { return symbols[static_cast<size_t>(i)]; };
  std::priority_queue<Pair> pairs;
  // A merge that gives an unused piece is undone at the end.
  std::unordered_map<std::string_view, std::pair<std::string_view, std::string_view>> parts;
  const auto joined = [](const Symbol& a, const Symbol& b) {
    return std::string_view(a.text.data(), a.text.size() + b.text.size());
  };
  const auto consider = [&](int64_t left, int64_t right) {
    if (left < 0 || right < 0 || symbol(left).fixed || symbol(right).fixed) return;
    const std::string_view both = joined(symbol(left), symbol(right));
    const auto found = words_.find(both);
    if (found == words_.end()) return;
    const Piece& piece = pieces_[static_cast<size_t>(found->second)];
    pairs.push({piece.score, left, right, both.size()});
    if (piece.kind == Kind::unused) parts[both] = {symbol(left).text, symbol(right).text};
  };
  for (size_t i = 1; i < symbols.size(); ++i) {
    consider(static_cast<int64_t>(i) - 1, static_cast<int64_t>(i));
  }
  while (!pairs.empty()) {
    const Pair top = pairs.top();
    pairs.pop();
    Symbol& left = symbol(top.left);
    Symbol& right = symbol(top.right);
    if (left.text.empty() || right.text.empty() ||
        left.text.size() + right.text.size() != top.size) {
      continue;
    }
    left.text = joined(left, right);
    left.after = right.after;
    if (right.after >= 0) symbol(right.after).before = top.left;
    right.text = {};
    consider(left.before, top.left);
    consider(top.left, left.after);
  }
  std::vector<Word> out;
  std::vector<std::string_view> waiting;
  for (int64_t i = 0; i >= 0; i = symbol(i).after) {
    waiting.push_back(symbol(i).text);
    while (!waiting.empty()) {
      const std::string_view word = waiting.back();
      waiting.pop_back();
      const int64_t id = id_of(word);
      const auto found = parts.find(word);
      if (pieces_[static_cast<size_t>(id)].kind == Kind::unused && found != parts.end()) {
        waiting.push_back(found->second.second);
        waiting.push_back(found->second.first);
      } else {
        out.push_back({word, id});
      }
    }
  }
  return out;
}

std::vector<int64_t> SentencePiece::encode(std::string_view text, bool add_bos,
                                           bool add_eos) const {
  const auto require = [](int64_t id, const char* what) {
    if (id < 0) throw_error<ValueError>("SentencePiece: the model has no piece for ", what);
  };
  std::vector<int64_t> out;
  if (add_bos) {
    require(bos_, "the beginning");
    out.push_back(bos_);
  }
  const std::string normalized = normalizer_.normalized(text);
  bool after_unknown = false;
  for (const Word& word : is_bpe_ ? merged(normalized) : unigram(normalized)) {
    const bool is_unknown = word.id == unknown_;
    if (is_unknown && !bytes_.empty()) {
      for (const char c : word.text) out.push_back(bytes_[static_cast<unsigned char>(c)]);
    } else if (!is_unknown || !after_unknown) {
      out.push_back(word.id);  // a run of unknown letters is one
    }
    after_unknown = is_unknown;
  }
  if (add_eos) {
    require(eos_, "the end");
    out.push_back(eos_);
  }
  return out;
}

std::string SentencePiece::decode(std::span<const int64_t> ids) const {
  std::string out, bytes;
  const auto flush = [&] {
    for (std::string_view rest = bytes; !rest.empty();) {
      const size_t letter = letter_length(rest);
      out += letter > 0 ? rest.substr(0, letter) : kBroken;
      rest.remove_prefix(std::max<size_t>(letter, 1));
    }
    bytes.clear();
  };
  bool at_start = true, start_taken = false;
  for (const int64_t id : ids) {
    const Piece& p = piece(id);
    if (p.kind == Kind::byte) {
      bytes += static_cast<char>(std::stoi(p.text.substr(3, 2), nullptr, 16));
      continue;
    }
    flush();
    if (start_taken || !out.empty()) at_start = false;
    start_taken = false;
    if (p.kind == Kind::control) continue;
    if (p.kind == Kind::unknown) {
      out += unknown_text_;
      continue;
    }
    std::string_view text = p.text;
    // The space that was put before the first word goes.
    if (at_start && (normalizer_.add_dummy_prefix || normalizer_.remove_extra_whitespaces)) {
      if (text.starts_with(kSpace)) {
        text.remove_prefix(kSpace.size());
        start_taken = !normalizer_.remove_extra_whitespaces;
      }
    }
    while (!text.empty()) {
      if (text.starts_with(kSpace)) {
        out += ' ';
        text.remove_prefix(kSpace.size());
      } else {
        out += text[0];
        text.remove_prefix(1);
      }
    }
  }
  flush();
  return out;
}

}  // namespace kiln::text
