// The library's tree of errors: the names and fields that Python and C++ have.

/** Base of all errors. `fields` names the values that were wrong. */
export class CrenelError extends Error {
  /**
   * @param {string} message
   * @param {Object<string, string|number|boolean|number[]>} [fields]
   */
  constructor(message, fields = {}) {
    super(message);
    this.name = new.target.name;
    this.fields = fields;
  }
  /** The stable name of the error, that of its class. */
  get code() {
    return this.name;
  }
}
/** A parameter set or an argument is outside what is allowed. */
export class ParameterError extends CrenelError {}
/** Objects disagree, or one cannot be used now. */
export class StateError extends CrenelError {}
/** Evaluation keys are missing. */
export class KeyMissingError extends CrenelError {}
/** Bytes that are truncated, oversized, corrupted, of another context or version. */
export class SerializationError extends CrenelError {}
/** A device is absent, out of memory, or failed. */
export class DeviceError extends CrenelError {}
/** Memory that is not there. */
export class OutOfMemoryError extends DeviceError {}
/** Meaningful, but not supported by this build or parameter set. */
export class UnsupportedError extends CrenelError {}
/** Work that was told to stop. */
export class Cancelled extends CrenelError {}
/** What a service answers, or a client of one meets. */
export class ServiceError extends CrenelError {}
/** No token, or one that the service does not take. */
export class AuthenticationError extends ServiceError {}
/** No such thing of this tenant. */
export class NotFoundError extends ServiceError {}
/** More, or larger, than the service takes. */
export class LimitError extends ServiceError {}
/** The service does not hold these evaluation keys (any more): send them again. */
export class KeysNeededError extends ServiceError {}
/** The service cannot answer now. */
export class UnavailableError extends ServiceError {}
/** The service's storage takes nothing more. */
export class StorageError extends ServiceError {}

const classes = new Map(
  [
    CrenelError, ParameterError, StateError, KeyMissingError, SerializationError, DeviceError, OutOfMemoryError,
    UnsupportedError, Cancelled, ServiceError, AuthenticationError, NotFoundError, LimitError, KeysNeededError,
    UnavailableError, StorageError,
  ].map((kind) => [kind.name, kind]),
);

/** The names of all classes. */
export const names = () => [...classes.keys()];

/** The error that `described` tells of, as C++, a worker or a service sent it: {code, message, fields}. */
export function errorOf({ code, message, fields }) {
  const kind = classes.get(code) ?? CrenelError;
  return new kind(message, fields ?? {});
}

/** What `errorOf` makes an error of again: errors lose their class on the way between threads. */
export function described(error) {
  if (error instanceof CrenelError) return { code: error.code, message: error.message, fields: error.fields };
  return { code: "CrenelError", message: `${error?.name ?? "Error"}: ${error?.message ?? error}`, fields: {} };
}
