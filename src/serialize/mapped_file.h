// A file in memory without being read: only the pages that are touched come from the disk.
#pragma once

#include <span>
#include <string>

#include "crenel/core/types.h"

namespace crenel::serialize {

/// Read-only map of a whole regular file. Throws SerializationError when it cannot be had, and
/// UnsupportedError on hosts without POSIX memory maps. Whoever shortens the file while it is
/// mapped gets this process killed (SIGBUS): writers must replace files, as save_evaluation_keys
/// does.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const u8> bytes() const { return {static_cast<const u8*>(data_), size_}; }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace crenel::serialize
