// What several devices need: copies of objects from one to another, and work that a token stops.
#pragma once

#include <nanobind/nanobind.h>

namespace crenel::python {

void bind_pool(nanobind::module_& m);

}  // namespace crenel::python
