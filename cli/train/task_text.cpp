// Data of texts: rows with a text and a class, and texts to be continued.
#include <algorithm>

#include "cli/train/table_files.h"
#include "cli/train/task_data.h"
#include "cli/train/tokens.h"
#include "kiln/core/error.h"
#include "kiln/core/utf8.h"
#include "kiln/io/input_file.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"

namespace kiln::cli {

namespace {

// i64 [N, length]: the first tokens of each text, padding behind them.
Tensor ids_of(const std::vector<std::string>& texts, const Tokens& tokens, int64_t length) {
  std::vector<int64_t> all;
  for (const std::string& text : texts) {
    const std::vector<int64_t> ids = tokens.padded(text, length);
    all.insert(all.end(), ids.begin(), ids.end());
  }
  return from_vector(all, {static_cast<int64_t>(texts.size()), length}, {.dtype = i64});
}

// The samples of a part of a corpus: each token of a stretch, and the one behind it.
data::DatasetHandle stretches(const std::vector<int64_t>& ids, int64_t begin, int64_t end,
                              int64_t length) {
  const int64_t count = std::max<int64_t>((end - begin - 1) / length, 0);
  std::vector<int64_t> x, y;
  for (int64_t i = 0; i < count * length; ++i) {
    x.push_back(ids[static_cast<size_t>(begin + i)]);
    y.push_back(ids[static_cast<size_t>(begin + i + 1)]);
  }
  return data::TensorDataset(from_vector(x, {count, length}, {.dtype = i64}),
                             from_vector(y, {count, length}, {.dtype = i64}));
}

std::vector<int64_t> read_corpus(const std::vector<std::string>& paths, Tokens& tokens,
                                 bool learns) {
  std::string text;
  for (const std::string& path : paths) {
    const io::InputFile file("text_corpus", path);
    const std::string part = file.read_whole(uint64_t{2} << 30);
    if (!is_utf8(part)) throw_error<IoError>("'", path, "' is no UTF-8 text");
    text += part;
  }
  if (learns) tokens.learn({text});
  return tokens.encode(text);
}

}  // namespace

TaskData open_texts(const std::string& kind, Fields& fields, const std::string& folder,
                    uint64_t seed) {
  const TableFiles files = read_tables(kind == "text_csv", fields, folder);
  const std::vector<std::string>& columns = files.training.names();
  const std::string text = fields.word("text", {}, columns);
  const std::string target = fields.word("target", {}, columns);
  if (files.training.type(text) != data::ColumnType::text) {
    fields.fail("text", concat("the column '", text, "' holds numbers; expected texts"));
  }
  Tokens tokens = Tokens::read(fields, folder, "word");
  const int64_t length = fields.whole("length", 64, 1, 65536);
  const double share = read_valid_share(fields);
  TaskData out;
  out.class_names = classes_of(files.training, target);
  if (out.class_names.size() < 2 || out.class_names.size() > 10000) {
    fields.fail("target", concat("'", target, "' has ", out.class_names.size(),
                                 " classes; expected 2 to 10000"));
  }
  const Tensor labels = labels_of(files.training, target, out.class_names);
  // Words that occur in the validation rows alone are unknown to the model, as new texts' are.
  const HeldOut parts =
      files.validation ? HeldOut{}
                       : hold_out(files.training.size(), labels.to_vector<int64_t>(), share, seed);
  const std::vector<std::string>& texts = files.training.texts(text);
  std::vector<std::string_view> seen;
  if (parts.training.empty()) {
    seen.assign(texts.begin(), texts.end());
  } else {
    for (const int64_t i : parts.training) seen.emplace_back(texts[static_cast<size_t>(i)]);
  }
  tokens.learn(seen);
  const auto open = [&](const data::Table& table) -> data::DatasetHandle {
    return data::TensorDataset(ids_of(table.texts(text), tokens, length),
                               labels_of(table, target, out.class_names));
  };
  out.training = open(files.training);
  if (files.validation) out.validation = open(*files.validation);
  if (files.test) out.test = open(*files.test);
  split_training(out, labels.to_vector<int64_t>(), share, seed);
  out.shape = {.task = Task::text_classes,
               .classes = static_cast<int64_t>(out.class_names.size()),
               .vocabulary = tokens.size(),
               .length = length};
  out.facts = tokens.facts();
  Json names = Json::Array();
  for (const std::string& name : out.class_names) names.add(Json(name));
  out.facts.add("classes", std::move(names));
  out.skipped = [count = files.skipped()] { return count; };
  out.text = concat("texts of up to ", length, " tokens of ", tokens.size(), ", ",
                    out.class_names.size(), " classes of '", target, "'");
  return out;
}

TaskData open_corpus(Fields& fields, const std::string& folder) {
  const std::string train = fields.path("train", folder);
  const std::string valid = fields.path("valid", folder, false);
  const std::string test = fields.path("test", folder, false);
  Tokens tokens = Tokens::read(fields, folder, "character");
  const int64_t length = fields.whole("length", 64, 2, 65536);
  const double share = read_valid_share(fields);
  const std::vector<int64_t> ids = read_corpus({train}, tokens, true);
  const auto count = static_cast<int64_t>(ids.size());
  TaskData out;
  // The end of the text is held out: what stands beside it has not been seen.
  const int64_t held = valid.empty() ? static_cast<int64_t>(share * static_cast<double>(count)) : 0;
  out.training = stretches(ids, 0, count - held, length);
  if (held > length) out.validation = stretches(ids, count - held, count, length);
  const auto open = [&](const std::string& path) {
    const std::vector<int64_t> own = read_corpus({path}, tokens, false);
    return stretches(own, 0, static_cast<int64_t>(own.size()), length);
  };
  if (!valid.empty()) out.validation = open(valid);
  if (!test.empty()) out.test = open(test);
  if ((*out.training)->size() == 0) {
    fields.fail("length",
                concat("the text has ", count, " tokens, too few for samples of ", length));
  }
  out.shape = {.task = Task::language,
               .classes = tokens.size(),
               .vocabulary = tokens.size(),
               .length = length};
  out.facts = tokens.facts();
  out.text =
      concat("a text of ", count, " tokens of ", tokens.size(), ", in stretches of ", length);
  return out;
}

}  // namespace kiln::cli
