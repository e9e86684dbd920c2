#include "kiln/io/model_store.h"

#include "kiln/io/model_file.h"
#include "kiln/io/model_reader.h"
#include "kiln/io/model_source.h"
#include "kiln/nn/module.h"

namespace kiln::io {

void save_into(const nn::Module& module, const std::string& path,
               const nn::TransferOptions& options, const Metadata& metadata) {
  save_model_file(path, nn::collect(module, options), {.metadata = metadata});
}

nn::ApplyResult load_from(nn::Module& module, const std::string& path,
                          const nn::TransferOptions& options, const ReadOptions& read) {
  const std::unique_ptr<ModelReader> reader = open_model_file(path, read);
  return nn::detail::apply_source(module, detail::ModelSource(*reader), options);
}

}  // namespace kiln::io
