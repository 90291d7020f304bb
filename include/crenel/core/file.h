// Files that are complete or not there.
#pragma once

#include <span>
#include <string>

#include "crenel/core/types.h"

namespace crenel {

/// Who may read a new file.
enum class FileAccess : u8 {
  usual,  ///< whoever the process' umask lets; a file that is replaced keeps its permissions
  owner,  ///< its owner alone (mode 0600), also when it replaces a file that more could read
};

/// Writes `bytes` to a new file that takes the name `path` when all of it is on the disk, replacing
/// an older regular file: whoever reads the name sees the old file or the new one, also when this
/// process is killed or the host loses power. Nothing but a regular file is replaced or followed:
/// symbolic links, directories, pipes and devices are refused. Throws SerializationError when the
/// file cannot be written, and leaves nothing behind, unless only the directory would not go to the
/// disk: then the file has its name, and the error says so. UnsupportedError on hosts without POSIX
/// files.
void write_file(const std::string& path, std::span<const u8> bytes,
                FileAccess access = FileAccess::usual);

}  // namespace crenel
