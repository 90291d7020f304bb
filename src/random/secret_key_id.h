// Where the public names of secret keys come from.
#pragma once

#include "crenel/core/secret_key_id.h"

namespace crenel::random {

/// 128 bits from the operating system, never none; throws StateError when it cannot deliver.
SecretKeyId draw_secret_key_id();

/// The name of part `part` of a secret key with parts, the same whenever it is asked for: `id` for
/// part 0, then the first bytes of SHA-256("crenel.secret_key_id.part" | id | part).
SecretKeyId secret_key_id_of_part(const SecretKeyId& id, u32 part);

}  // namespace crenel::random
