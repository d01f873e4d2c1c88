/** Owns what may be there already: waiting for that costs a call more than having it, so nobody waits. */
export type Soon<T> = T | Promise<T>;

/** Goes on with a value at once where it is there. */
export function onceThere<T, Next>(value: Soon<T>, next: (value: T) => Next): Soon<Next> {
  return value instanceof Promise ? value.then(next) : next(value);
}
