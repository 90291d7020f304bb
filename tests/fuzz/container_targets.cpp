// The pieces under every loader: JSON, numbers, the safetensors container.
#include "fuzz/targets.h"
#include "serialize/json.h"
#include "serialize/scalars.h"

namespace crenel::test {
namespace {

/// The first bytes, up to 0xff, say what is asked of the reader: it promises a refusal for whatever
/// the rest of the bytes have instead, in any order of questions that brackets allow.
void run_json(std::span<const u8> bytes) {
  const auto end = std::find(bytes.begin(), bytes.end(), u8{0xff});
  const std::size_t questions = static_cast<std::size_t>(end - bytes.begin());
  const auto text = bytes.subspan(std::min(questions + 1, bytes.size()));
  try {
    serialize::JsonReader reader(text, 8);
    std::vector<bool> objects;  // the open brackets
    for (const u8 question : bytes.first(questions)) switch (question % 7) {
        case 0:
          reader.open_object();
          objects.push_back(true);
          break;
        case 1:
          reader.open_array();
          objects.push_back(false);
          break;
        case 2: {
          if (objects.empty()) break;
          serialize::JsonString key;
          const bool more = objects.back() ? reader.next_member(key) : reader.next_element();
          if (!more) objects.pop_back();
          break;
        }
        case 3: {
          const auto s = reader.string();
          if (s.plain && s.offset + s.value.size() > 8 + text.size())
            throw std::logic_error("a string beyond the text");
          break;
        }
        case 4:
          reader.integer();
          break;
        case 5:
          reader.offset();
          break;
        default:
          reader.finish();
      }
    accepted_loads() += questions != 0;
  } catch (const SerializationError&) {
  }
}

void run_scalars(std::span<const u8> bytes) {
  const std::string text(bytes.begin(), bytes.end());
  if (const auto value = serialize::parse_integer(text))
    if (++accepted_loads(); std::to_string(*value) != text)
      throw std::logic_error("an integer with two texts");
  if (const auto value = serialize::parse_real(text))
    if (++accepted_loads(); serialize::format_real(*value) != text)
      throw std::logic_error("a real with two texts");
  if (serialize::find_invalid_utf8(text) == std::string::npos) {
    const std::string quoted = serialize::json_quote(text);
    const std::vector<u8> literal(quoted.begin(), quoted.end());
    serialize::JsonReader reader(literal, 0);
    if (reader.string().value != text) throw std::logic_error("a string that quoting changes");
    reader.finish();
  }
}

void run_safetensors(std::span<const u8> bytes) {
  try {
    const serialize::SafetensorsFile file(bytes, kFuzzLimits.bound(0, bytes.size()));
    u64 payload = 0;
    for (const auto& [name, tensor] : file.tensors()) payload += file.data(tensor).size();
    if (8 + file.header().size() + payload != bytes.size())
      throw std::logic_error("tensors that do not cover the payload");
    ++accepted_loads();
  } catch (const SerializationError& error) {
    if (error.field("where").empty()) throw std::logic_error("refusal without a place");
  }
}

std::map<std::string, Bytes> text_seeds(std::initializer_list<const char*> texts) {
  std::map<std::string, Bytes> seeds;
  for (const std::string text : texts)
    seeds["seed-" + std::to_string(seeds.size())] = Bytes(text.begin(), text.end());
  return seeds;
}

}  // namespace

std::vector<FuzzTarget> container_targets() {
  return {
      {"json", run_json,
       [] {
         return text_seeds(
             {"\x07\x02\x03\x02\x06\xff{\"key\": \"a\\u00e9\\ud83d\\ude00\"}",
              "\x07\x02\x01\x02\x04\x02\x04\x02\x02\x06\xff{\"a\":[1,18446744073709551615]} ",
              "\x03\xff\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""});
       }},
      {"scalars", run_scalars,
       [] { return text_seeds({"18446744073709551615", "0x1.921fb54442d18p+1", "0x1p-1022"}); }},
      {"safetensors", run_safetensors,
       [] {
         return std::map<std::string, Bytes>{{"params", ckks::to_bytes(tiny_ckks().params())}};
       }},
  };
}

}  // namespace crenel::test
