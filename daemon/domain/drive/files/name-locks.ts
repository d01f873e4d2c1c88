/** Serialization of changes to one name: comparing a file and then replacing it is atomic to all other writers. */
import { Mailbox } from "../../../core/concurrency/mailbox.ts";

export class NameLocks {
  readonly #lanes = new Map<string, { mailbox: Mailbox; waiting: number }>();

  /** Runs `work` when nothing else with this key is running. */
  async take<T>(key: string, work: () => Promise<T>): Promise<T> {
    const lane = this.#lanes.get(key) ?? { mailbox: new Mailbox(), waiting: 0 };
    this.#lanes.set(key, lane);
    lane.waiting++;
    try {
      return await lane.mailbox.put(work);
    } finally {
      if (--lane.waiting === 0) this.#lanes.delete(key);
    }
  }
}
