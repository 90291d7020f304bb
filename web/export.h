// What JavaScript calls: a function of the module under its own name.
#pragma once

#define CRENEL_EXPORT(type, name) extern "C" __attribute__((export_name(#name), used)) type name
