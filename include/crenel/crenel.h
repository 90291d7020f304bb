// The whole public API.
#pragma once

#include "crenel/ckks/client.h"
#include "crenel/ckks/context.h"
#include "crenel/ckks/evaluator.h"
#include "crenel/ckks/params.h"
#include "crenel/ckks/serialize.h"
#include "crenel/core/error.h"
#include "crenel/core/version.h"
#include "crenel/device/device.h"
