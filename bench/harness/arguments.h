// Command lines: options are declared with the variable that they set.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "crenel/core/types.h"

namespace crenel::bench {

/// A program's name and its arguments.
using Words = std::vector<std::string>;

class Arguments {
 public:
  /// `about`: what --help prints above the options.
  explicit Arguments(std::string about) : about_(std::move(about)) {}

  Arguments& flag(const std::string& name, bool& variable, const std::string& help);
  Arguments& text(const std::string& name, std::string& variable, const std::string& help);
  /// Whole numbers from `least` up to what the variable holds.
  Arguments& number(const std::string& name, u32& variable, const std::string& help, u32 least = 0);
  Arguments& number(const std::string& name, u64& variable, const std::string& help, u64 least = 0);
  /// Separated by commas, each at least 1.
  Arguments& numbers(const std::string& name, std::vector<u32>& variable, const std::string& help);
  /// `take` throws ParameterError for what it cannot read.
  Arguments& value(const std::string& name, const std::string& help,
                   std::function<void(const std::string&)> take);
  /// A word without dashes is the value of this option: `boot toy-boot40`. Once a command line.
  Arguments& positional(const std::string& option);
  /// With `option` these mean nothing: together they are refused.
  Arguments& excludes(const std::string& option, const std::vector<std::string>& others);
  /// Without `other`, `option` means nothing and is refused.
  Arguments& needs(const std::string& option, const std::string& other);
  /// --json FILE. A file that is there already, or in no folder, is refused before anything is
  /// measured.
  Arguments& json(std::string& variable);

  /// False when --help was asked for, and printed. ParameterError names what is not understood, and
  /// of options that do not go together both.
  bool parse(const Words& words) const;

 private:
  struct Option {
    std::string name, help;
    bool takes_value;
    std::function<void(const std::string&)> take;
  };
  /// Two options, and whether the second must be there with the first, or must not.
  struct Pair {
    std::string option, other;
    bool together;
  };
  void print(const std::string& program) const;
  void check_pairs(const std::set<std::string>& given) const;

  std::string about_;
  std::vector<Option> options_;
  std::vector<Pair> pairs_;
  std::string positional_;  ///< an option, or nothing
};

/// The parts between commas.
std::vector<std::string> split(const std::string& text);
/// ParameterError names the option and what it takes.
u64 parse_number(const std::string& name, const std::string& text, u64 least, u64 most);

}  // namespace crenel::bench
