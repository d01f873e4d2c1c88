/** Values that may already be present: awaiting a present value would cost a call more than the value. */
export type MaybePromise<T> = T | Promise<T>;

/** Continues synchronously if the value is present. */
export function whenResolved<T, Next>(value: MaybePromise<T>, next: (value: T) => Next): MaybePromise<Next> {
  return value instanceof Promise ? value.then(next) : next(value);
}
