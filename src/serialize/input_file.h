// A file that is read where it is needed: only what is asked for comes from the disk.
#pragma once

#include <span>
#include <string>

#include "crenel/core/types.h"

namespace crenel::serialize {

/// A regular file, open for reading. Bytes are copied out, never mapped: a file that somebody
/// changes or shortens meanwhile can give wrong bytes or an error, but no signal, and what was
/// checked does not change afterwards. Throws SerializationError when the file cannot be read, and
/// UnsupportedError on hosts without POSIX files.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();

  /// Bytes of the file when it was opened.
  u64 size() const { return size_; }
  /// Bytes [at, at + to.size()); SerializationError where the file does not have them (any more).
  void read(u64 at, std::span<u8> to) const;

 private:
  std::string path_;
  int file_ = -1;
  u64 size_ = 0;
};

}  // namespace crenel::serialize
