// The whole public API.
#pragma once

#include "crenel/circuits/bootstrapping.h"
#include "crenel/circuits/linear_transform.h"
#include "crenel/ckks/client.h"
#include "crenel/ckks/context.h"
#include "crenel/ckks/evaluator.h"
#include "crenel/ckks/params.h"
#include "crenel/ckks/serialize.h"
#include "crenel/core/error.h"
#include "crenel/core/version.h"
#include "crenel/device/account.h"
#include "crenel/device/device.h"
