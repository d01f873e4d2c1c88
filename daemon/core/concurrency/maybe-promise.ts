/** Values that may already be present: awaiting a present value would cost a call more than the value. */
export type Soon<T> = T | Promise<T>;

/** Continues synchronously if the value is present. */
export function onceThere<T, Next>(value: Soon<T>, next: (value: T) => Next): Soon<Next> {
  return value instanceof Promise ? value.then(next) : next(value);
}
