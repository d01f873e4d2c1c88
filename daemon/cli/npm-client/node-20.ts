/** Polyfills of standard functions that Node 20 lacks; imported before all other modules of the client. */

const promises = Promise as { withResolvers?: unknown };
promises.withResolvers ??= <T>() => {
  let resolve: unknown;
  let reject: unknown;
  const promise = new Promise<T>((...both) => {
    [resolve, reject] = both;
  });
  return { promise, resolve, reject };
};

const maps = Map as { groupBy?: unknown };
maps.groupBy ??= <K, T>(items: Iterable<T>, keyOf: (item: T) => K) => {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    groups.set(key, [...(groups.get(key) ?? []), item]);
  }
  return groups;
};

const urls = URL as { parse?: unknown };
urls.parse ??= (url: string, base?: string) => (URL.canParse(url, base) ? new URL(url, base) : null);

const arrays = Uint8Array as { fromBase64?: unknown };
arrays.fromBase64 ??= (text: string) => new Uint8Array(Buffer.from(text, "base64"));
const bytes = Uint8Array.prototype as { toBase64?: unknown };
bytes.toBase64 ??= function (this: Uint8Array) {
  return Buffer.from(this.buffer, this.byteOffset, this.byteLength).toString("base64");
};

/** Only the iterator methods that the client uses. */
const iterators = Object.getPrototypeOf(Object.getPrototypeOf([].values()));
iterators.map ??= function* <T, U>(this: Iterable<T>, change: (item: T) => U) {
  for (const item of this) yield change(item);
};
iterators.filter ??= function* <T>(this: Iterable<T>, isWanted: (item: T) => boolean) {
  for (const item of this) if (isWanted(item)) yield item;
};
iterators.toArray ??= function <T>(this: Iterable<T>) {
  return [...this];
};
