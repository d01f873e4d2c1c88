/** Maps in memory that transactions change: a rolled-back transaction's changes are undone automatically. */
import type { Database } from "./transact.ts";

export class TransactionMap<Key, Value> {
  readonly #values = new Map<Key, Value>();
  readonly #undo: Database["undo"];

  constructor({ undo }: Pick<Database, "undo">) {
    this.#undo = undo;
  }

  get size(): number {
    return this.#values.size;
  }

  get(key: Key): Value | undefined {
    return this.#values.get(key);
  }

  /** The key then comes last. */
  set(key: Key, value: Value): void {
    this.#takeOut(key);
    this.#values.set(key, value);
  }

  delete(key: Key): void {
    this.#takeOut(key);
  }

  /** The key set the longest ago. */
  oldest(): Key | undefined {
    return this.#values.keys().next().value;
  }

  #takeOut(key: Key): void {
    const before = this.#values.get(key);
    const wasThere = this.#values.delete(key);
    this.#undo(() => {
      if (wasThere) this.#values.set(key, before as Value);
      else this.#values.delete(key);
    });
  }
}
