// Files that are complete or not there.
#include <nanobind/stl/filesystem.h>

#include "arrays.h"

namespace crenel::python {
namespace {

void write(const std::filesystem::path& path, nb::handle data, bool secret) {
  const BufferView view(data);
  released([&] {
    write_file(path.string(), view.bytes(), secret ? FileAccess::owner : FileAccess::usual);
  });
}

}  // namespace

void bind_files(nb::module_& m) {
  m.def(
      "write_file", &write, "path"_a, "data"_a, nb::kw_only(), "secret"_a = false,
      nb::sig("def write_file(path: str | os.PathLike[str], data: bytes | bytearray | memoryview, "
              "*, secret: bool = False) -> None"),
      "Write bytes, of keys for example, to a file that is complete or not there.\n\n"
      "Parameters\n----------\n"
      "path : a new file, or a regular file that is replaced when the new one is on the disk\n"
      "data : all of its bytes\n"
      "secret : nobody but the owner may read it (mode 0600); otherwise the umask decides, and a\n"
      "    file that is replaced keeps its permissions\n\n"
      "Symbolic links, directories, pipes and devices are neither followed nor replaced. Raises\n"
      "SerializationError, and leaves nothing behind, when the file cannot be written.");
}

}  // namespace crenel::python
