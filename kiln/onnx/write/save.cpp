#include "kiln/io/atomic_file.h"
#include "kiln/onnx/onnx.h"
#include "kiln/onnx/write/free_sizes.h"
#include "kiln/onnx/write/writer.h"

namespace kiln::onnx {

void save(const GraphModel& model, const std::string& path) {
  const std::string text =
      wire::encode(model.free_dims().empty() ? Writer(model.graph(), model.output_names()).run()
                                             : with_free_sizes(model));
  if (text.size() >= size_t{1} << 31) {
    throw_error<ValueError>("onnx: the model takes ", text.size(),
                            " bytes; expected less than 2 GiB, which is all that one file holds");
  }
  io::AtomicFile out("onnx", path);
  out.write(text.data(), text.size());
  out.commit();
}

}  // namespace kiln::onnx
