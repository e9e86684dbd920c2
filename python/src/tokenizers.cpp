// kiln.models: tokenizers written in C++.
#include "binding.h"
#include "kiln/text/sentence_piece.h"
#include "parts.h"

namespace kiln::python {

using text::SentencePiece;

void bind_tokenizers(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("_tokenizers", "Texts to token ids and back.");
  nb::class_<SentencePiece>(m, "SentencePiece",
                            "Texts to token ids and back, by a model file of SentencePiece.")
      .def(
          "__init__",
          [](SentencePiece* self, const nb::bytes& model) {
            new (self) SentencePiece(SentencePiece::from_bytes({model.c_str(), model.size()}));
          },
          "model"_a, "From the bytes of a file.")
      .def(
          "encode",
          [](const SentencePiece& self, const std::string& text, bool add_bos, bool add_eos) {
            return self.encode(text, add_bos, add_eos);
          },
          "text"_a, "add_bos"_a = false, "add_eos"_a = false, "The ids of a text.")
      .def(
          "_decode",
          [](const SentencePiece& self, const std::vector<int64_t>& ids) {
            return self.decode(ids);
          },
          "ids"_a)
      .def(
          "id_to_token", [](const SentencePiece& self, int64_t id) { return self.piece(id).text; },
          "id"_a)
      .def(
          "token_to_id",
          [](const SentencePiece& self, const std::string& token) { return self.find(token); },
          "token"_a, "The id of a token, or None.")
      .def("__len__", &SentencePiece::size)
      .def_prop_ro("unk_id", &SentencePiece::unk_id)
      .def_prop_ro("bos_id", &SentencePiece::bos_id, "-1 where the model has none.")
      .def_prop_ro("eos_id", &SentencePiece::eos_id, "-1 where the model has none.")
      .def_prop_ro("pad_id", &SentencePiece::pad_id, "-1 where the model has none.");
}

}  // namespace kiln::python
