// A small GPT-2 learns a text character by character, and writes.
//
//   build/release/examples/char_gpt FILE [STEPS]
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include <kiln/kiln.h>
#include <kiln/models/models.h>

using namespace kiln;

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: char_gpt FILE [STEPS]\n");
    return 2;
  }
  std::ifstream file(argv[1], std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  constexpr int64_t kContext = 64, kBatch = 16;
  if (int64_t(text.size()) < 2 * kContext) {
    std::fprintf(stderr, "%s: a text of at least %d bytes is needed\n", argv[1], int(2 * kContext));
    return 1;
  }
  const int64_t steps = argc > 2 ? std::atoll(argv[2]) : 2000;

  manual_seed(0);
  std::map<char, int64_t> codes;
  for (const char letter : text) codes.emplace(letter, 0);
  std::string letters;
  for (auto& [letter, code] : codes) {
    code = int64_t(letters.size());
    letters += letter;
  }
  std::vector<int64_t> values;
  for (const char letter : text) values.push_back(codes.at(letter));
  const Tensor ids = tensor(values);

  models::GPT2LMHeadModel model = models::gpt2({.vocab_size = int64_t(letters.size()),
                                                .n_positions = 4 * kContext,
                                                .n_embd = 96,
                                                .n_layer = 3,
                                                .n_head = 3,
                                                .resid_pdrop = 0,
                                                .embd_pdrop = 0,
                                                .attn_pdrop = 0});
  optim::AdamW optimizer(model.parameters(), {.lr = 2e-3, .weight_decay = 0.05});
  double average = 0;
  for (int64_t step = 1; step <= steps; ++step) {
    // Rows from random places: [batch, context + 1].
    const Tensor starts = randint(0, ids.size(0) - kContext, {kBatch, 1});
    const Tensor rows = ids.gather(0, (starts + arange(0, kContext + 1)).flatten());
    const Tensor x = rows.reshape({kBatch, kContext + 1});
    const Tensor logits = model(x.narrow(1, 0, kContext)).flatten(0, 1);
    const Tensor target = x.narrow(1, 1, kContext).flatten();
    const Tensor loss = functional::cross_entropy(logits, target);
    optimizer.step(loss.backward());
    average = step == 1 ? loss.item<double>() : 0.98 * average + 0.02 * loss.item<double>();
    if (step % 200 != 0 && step != steps) continue;
    std::printf("step %lld: %.3f nats per character\n", static_cast<long long>(step), average);
    model.eval();
    const Tensor written = model.generate(
        {{values[0]}}, {.max_new_tokens = 120, .do_sample = true, .temperature = 0.8, .seed = 1});
    for (const int64_t code : written.flatten().to_vector<int64_t>()) {
      std::putchar(letters[size_t(code)]);
    }
    std::printf("\n");
    std::fflush(stdout);
    model.train();
  }
}
