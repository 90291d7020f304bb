// Named counters of what a run has met. Every bin is declared before the run, so an empty one
// shows.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace crenel::fhecore::dv {

class Coverage {
 public:
  /// All pairs of the names, one group: "group:left*right".
  void declare(const std::string& group, const std::vector<std::string>& left,
               const std::vector<std::string>& right = {}) {
    for (const auto& l : left) {
      if (right.empty()) bins_.emplace(group + ":" + l, 0);
      for (const auto& r : right) bins_.emplace(group + ":" + l + "*" + r, 0);
    }
  }
  void hit(const std::string& group, const std::string& left, const std::string& right = "") {
    const auto bin = bins_.find(group + ":" + left + (right.empty() ? "" : "*" + right));
    if (bin == bins_.end())
      throw std::logic_error("coverage bin " + group + ":" + left + "*" + right +
                             " is not declared");
    ++bin->second;
  }
  std::vector<std::string> empty() const {
    std::vector<std::string> names;
    for (const auto& [name, count] : bins_)
      if (count == 0) names.push_back(name);
    return names;
  }
  std::size_t size() const { return bins_.size(); }
  std::string json() const {
    std::string text = "{";
    for (const auto& [name, count] : bins_)
      text += (text.size() > 1 ? ", \"" : "\"") + name + "\": " + std::to_string(count);
    return text + "}";
  }

 private:
  std::map<std::string, std::uint64_t> bins_;
};

}  // namespace crenel::fhecore::dv
