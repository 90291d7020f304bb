#include "harness/arguments.h"

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <sstream>
#include <string_view>
#include <utility>

#include "crenel/core/error.h"

namespace crenel::bench {
namespace {

void check_new_file(const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(path).parent_path();
  if (!folder.empty() && !fs::is_directory(folder))
    throw ParameterError(cat("--json: there is no folder ", folder.string()), {{"json", path}});
  if (fs::exists(path))
    throw ParameterError(cat("--json: ", path, " is there already; results are never overwritten"),
                         {{"json", path}});
}

}  // namespace

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

u64 parse_number(const std::string& name, const std::string& text, u64 least, u64 most) {
  u64 value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= most)
    return value;
  throw ParameterError(
      cat(name, " takes whole numbers from ", least, " to ", most, ", got '", text, "'"),
      {{"option", name}, {"value", text}});
}

Arguments& Arguments::flag(const std::string& name, bool& variable, const std::string& help) {
  options_.push_back({name, help, false, [&variable](const std::string&) { variable = true; }});
  return *this;
}

Arguments& Arguments::text(const std::string& name, std::string& variable,
                           const std::string& help) {
  return value(name, help, [&variable](const std::string& text) { variable = text; });
}

Arguments& Arguments::number(const std::string& name, u32& variable, const std::string& help,
                             u32 least) {
  return value(name, help, [&variable, name, least](const std::string& text) {
    const u64 most = std::numeric_limits<u32>::max();
    variable = static_cast<u32>(parse_number(name, text, least, most));
  });
}

Arguments& Arguments::number(const std::string& name, u64& variable, const std::string& help,
                             u64 least) {
  return value(name, help, [&variable, name, least](const std::string& text) {
    variable = parse_number(name, text, least, std::numeric_limits<u64>::max());
  });
}

Arguments& Arguments::numbers(const std::string& name, std::vector<u32>& variable,
                              const std::string& help) {
  return value(name, help, [&variable, name](const std::string& text) {
    const u64 most = std::numeric_limits<u32>::max();
    variable.clear();
    for (const auto& part : split(text))
      variable.push_back(static_cast<u32>(parse_number(name, part, 1, most)));
    if (variable.empty()) parse_number(name, text, 1, most);
  });
}

Arguments& Arguments::value(const std::string& name, const std::string& help,
                            std::function<void(const std::string&)> take) {
  options_.push_back({name, help, true, std::move(take)});
  return *this;
}

Arguments& Arguments::positional(const std::string& option) {
  positional_ = option;
  return *this;
}

Arguments& Arguments::excludes(const std::string& option, const std::vector<std::string>& others) {
  for (const std::string& other : others) pairs_.push_back({option, other, false});
  return *this;
}

Arguments& Arguments::needs(const std::string& option, const std::string& other) {
  pairs_.push_back({option, other, true});
  return *this;
}

Arguments& Arguments::json(std::string& variable) {
  return value("--json", "a new file for the results, with their provenance",
               [&variable](const std::string& text) {
                 check_new_file(text);
                 variable = text;
               });
}

bool Arguments::parse(const Words& words) const {
  bool placed = false;
  std::set<std::string> given;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "--help" || words[i] == "-h") {
      print(words.front());
      return false;
    }
    const bool place = !positional_.empty() && !words[i].starts_with('-');
    if (place && std::exchange(placed, true))
      throw ParameterError(cat("one value of ", positional_, " a run, got '", words[i], "' too"),
                           {{"option", positional_}, {"value", words[i]}});
    const Option* option = nullptr;
    for (const Option& known : options_)
      if (known.name == (place ? positional_ : words[i])) option = &known;
    if (place && option) {
      option->take(words[i]);
      given.insert(option->name);
      continue;
    }
    if (!option)
      throw ParameterError(
          cat("unknown option '", words[i], "'; ", words.front(), " --help lists them"),
          {{"option", words[i]}});
    if (option->takes_value && i + 1 == words.size())
      throw ParameterError(cat(option->name, " takes a value: ", option->help),
                           {{"option", option->name}});
    option->take(option->takes_value ? words[++i] : std::string());
    given.insert(option->name);
  }
  check_pairs(given);
  return true;
}

void Arguments::check_pairs(const std::set<std::string>& given) const {
  for (const auto& [option, other, together] : pairs_) {
    if (!given.contains(option) || given.contains(other) == together) continue;
    const std::string text = together ? cat(option, " without ", other, ", which it is about")
                                      : cat(option, " with ", other, ", which it leaves out");
    throw ParameterError(text, {{"option", option}, {"other", other}});
  }
}

void Arguments::print(const std::string& program) const {
  const std::string place =
      positional_.empty() ? "" : cat(" [", std::string_view(positional_).substr(2), "]");
  std::printf("%s\n\n%s%s [options]\n", about_.c_str(), program.c_str(), place.c_str());
  for (const Option& option : options_) {
    const std::string name = option.name + (option.takes_value ? " ..." : "");
    std::printf("  %-20s %s\n", name.c_str(), option.help.c_str());
  }
}

}  // namespace crenel::bench
