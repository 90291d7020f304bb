// The only file outside backends/ that names them.
#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "crenel/core/error.h"
#include "device/backend.h"
#include "device/dry_models.h"
#include "device/fhecore/kernels.h"
#include "device/several.h"

namespace crenel::device {
namespace {

// The index of "cuda:<index>" after its prefix; nothing for any other text.
std::optional<int> index_after(const std::string& name, const std::string& prefix, int most) {
  if (name.rfind(prefix, 0) != 0) return std::nullopt;
  int index = 0;
  const char *begin = name.data() + prefix.size(), *end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(begin, end, index);
  if (error != std::errc() || stop != end || index < 0 || index > most) return std::nullopt;
  return index;
}

// "/1of2" at the end of a name: the part, and the name without it.
std::optional<GpuPart> part_at_end(std::string& name) {
  const std::size_t slash = name.find('/');
  if (slash == std::string::npos) return GpuPart{};
  const auto read = [](const char* begin, const char* end, u32& value) {
    const auto [stop, error] = std::from_chars(begin, end, value);
    return error == std::errc() && stop == end && value >= 1 && value <= 1024;
  };
  const std::string text = name.substr(slash + 1);
  const std::size_t of = text.find("of");
  GpuPart part;
  if (of == std::string::npos || !read(text.data(), text.data() + of, part.part) ||
      !read(text.data() + of + 2, text.data() + text.size(), part.parts) || part.part > part.parts)
    return std::nullopt;
  name.resize(slash);
  return part;
}

struct DryName {
  const DryModel* model;
  std::optional<int> index;
};

// What "cuda:dry-<model>:<index>" names, of which both may lack; nothing for any other text.
std::optional<DryName> dry_of(const std::string& name) {
  const std::string prefix = "cuda:dry";
  if (name.rfind(prefix, 0) != 0) return std::nullopt;
  const std::size_t colon = std::min(name.find(':', prefix.size()), name.size());
  const std::string chosen = name.substr(prefix.size(), colon - prefix.size());
  const DryModel* model = chosen.empty() ? kDryModels : nullptr;
  for (const DryModel& each : kDryModels)
    if (chosen == cat("-", each.name)) model = &each;
  if (model == nullptr) return std::nullopt;
  if (colon == name.size()) return DryName{model, std::nullopt};
  const auto index = index_after(name, name.substr(0, colon + 1), kDryGpus - 1);
  return index ? std::optional(DryName{model, index}) : std::nullopt;
}

std::string dry_models() {
  std::string names;
  for (const DryModel& model : kDryModels) names += cat(names.empty() ? "" : ", ", model.name);
  return names;
}

#if !defined(CRENEL_CLIENT_ONLY)
// The devices of "cuda:0+1", by name: a part that is a number has the prefix of the one before.
std::vector<std::string> names_of_parts(const std::string& name) {
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('+', begin), name.size());
    std::string part = name.substr(begin, end - begin);
    const bool number = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
    if (number && !names.empty()) part.insert(0, names.back(), 0, names.back().rfind(':') + 1);
    if (part.empty() || part == "auto" || (number && part.find(':') == std::string::npos))
      throw DeviceError(cat("device \"", name, "\": part \"", name.substr(begin, end - begin),
                            "\", expected devices joined by +, such as \"cuda:0+1\""),
                        {{"device", name}});
    names.push_back(std::move(part));
    begin = end + 1;
  }
  return names;
}

std::shared_ptr<Device> open_parts(const std::string& name) {
  std::vector<std::shared_ptr<Device>> parts;
  for (const std::string& part : names_of_parts(name)) {
    // its kernels wait for those of other GPUs, and would have to be there together
    if (part.find('/') != std::string::npos)
      throw DeviceError(
          cat("device \"", name, "\": part \"", part, "\", expected whole GPUs to be joined by +"),
          {{"device", name}});
    parts.push_back(open(part));
  }
  return make_split_device(name, std::move(parts));
}
#endif

}  // namespace

// NOLINTNEXTLINE(performance-unnecessary-value-param): those who override it keep the plan
std::unique_ptr<TorusKernels> Backend::make_torus_kernels(TorusPlan) {
  throw UnsupportedError(cat("device ", info().name, " has no TFHE kernels"));
}

std::unique_ptr<FhecoreKernels> Backend::make_fhecore_kernels() {
  throw UnsupportedError(cat("device ", info().name, " has no emulation of FHECore"));
}

Backend& backend_of(Device& device) { return static_cast<Backend&>(device); }

std::string cuda_unavailable_reason() { return cuda_missing_reason(); }

std::shared_ptr<Device> open(const std::string& name) {
  if (name == "ref") return make_ref_device();
  if (name == "cpu") return make_cpu_device();
  if (name == "auto") {
    if (const std::string lost = cuda_lost_reason(); !lost.empty())
      throw DeviceError(cat("auto: ", lost), {{"device", name}});
    if (cuda_device_count() > 0) return make_cuda_device(0);
    return make_cpu_device();
  }
#if !defined(CRENEL_CLIENT_ONLY)  // a client of CKKS (web/) has one device
  if (name.find('+') != std::string::npos) return open_parts(name);
#endif
  std::string whole = name;
  const std::optional<GpuPart> part = part_at_end(whole);
  if (const auto dry = part ? dry_of(whole) : std::nullopt;
      dry && (part->parts == 0 || !dry->index))
    return make_dry_cuda_device(*dry->model, dry->index, *part);
  const auto index =
      whole == "cuda" ? 0 : index_after(whole, "cuda:", std::numeric_limits<int>::max());
  if (!index || !part)
    throw DeviceError(
        cat("device \"", name,
            "\", expected \"ref\", \"cpu\", \"cuda\", \"cuda:<index>\", a part of its "
            "multiprocessors such as \"cuda:<index>/1of2\", \"cuda:dry\", "
            "\"cuda:dry:<index>\", \"cuda:dry-<model>\" (",
            dry_models(), "), \"auto\" or several joined by +"),
        {{"device", name}});
  return make_cuda_device(*index, *part);
}

std::vector<DeviceInfo> available() {
  std::vector<DeviceInfo> found{make_ref_device()->info(), make_cpu_device()->info()};
  for (int i = 0; i < cuda_device_count(); ++i) found.push_back(make_cuda_device(i)->info());
  return found;
}

}  // namespace crenel::device
