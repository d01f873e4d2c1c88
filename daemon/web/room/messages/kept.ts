/** The messages of a room in a page: all retained ones from some position on, up to the newest loaded one. */
import { signal } from "@preact/signals";
import type { auditList } from "../../../../shared/api/audit.ts";
import type { agentWait, MessageRecord } from "../../../../shared/api/fabric.ts";
import { get, Refused } from "../../data/api.ts";

const PAGE = 200;
const MAX_AT_ONCE = 1000;
/** Above this limit the oldest are dropped from the page. */
const MAX_MESSAGES = 20_000;
const MAX_BYTES = 32 * 1024 * 1024;

export class MessageCache {
  /** In the room's message order. */
  readonly all = signal<readonly MessageRecord[]>([]);
  readonly hasOlder = signal(false);
  readonly #path: string;
  #hasBegun = false;
  /** All after it are here. */
  #first = 0;
  #last = 0;
  /** Whether messages were already dropped from the page. */
  #isFull = false;

  /** `path`: that of the room. */
  constructor(path: string) {
    this.#path = path;
  }

  /** Loads new messages. Throws Refused. */
  async newer(over: AbortSignal): Promise<void> {
    if (!this.#hasBegun) await this.#begin(over);
    const last = await this.#fill(this.#last, Number.POSITIVE_INFINITY, over);
    this.#last = Math.max(this.#last, last);
  }

  /** Loads some older messages. Throws Refused. */
  async older(over?: AbortSignal): Promise<void> {
    await this.#back(PAGE, over);
  }

  /** Loads all messages down to this position, as far as the page's limits allow. Throws Refused. */
  async reach(seq: number, over: AbortSignal): Promise<void> {
    if (seq > this.#last) await this.newer(over);
    while (this.#first >= seq && !this.#isFull) await this.#back(MAX_AT_ONCE, over);
  }

  /** The position of the newest messages: from the audit record of the last one. */
  async #begin(over: AbortSignal): Promise<void> {
    const query = { event: "message.", outcome: "success", limit: 50 };
    const { items } = await get<typeof auditList>(`${this.#path}/audit`, query, over);
    const newest = Math.max(0, ...items.map(({ details }) => Number(details.seq ?? 0)));
    this.#first = this.#last = Math.max(0, newest - PAGE);
    this.hasOlder.value = this.#first > 0;
    this.#hasBegun = true;
  }

  async #back(count: number, over?: AbortSignal): Promise<void> {
    const from = Math.max(0, this.#first - count);
    await this.#fill(from, this.#first, over);
    if (this.#isFull) return;
    this.#first = Math.min(this.#first, from);
    this.hasOlder.value = this.#first > 0;
  }

  /** Returns how far it came. */
  async #fill(from: number, to: number, over?: AbortSignal): Promise<number> {
    for (let at = from; ; ) {
      const page = await this.#read(at, Math.min(MAX_AT_ONCE, to - at), over);
      this.#keep(page.items);
      at = Math.max(at, page.next_after);
      if (page.next_cursor === null || at >= to) return at;
    }
  }

  /** If some of the following messages are no longer retained, the rest is read from the room's beginning. */
  async #read(after: number, limit: number, over?: AbortSignal) {
    const path = `${this.#path}/messages`;
    try {
      return await get<typeof agentWait>(path, { after, limit }, over);
    } catch (error) {
      if (!(error instanceof Refused) || error.problem.code !== "history_gone") throw error;
      const page = await get<typeof agentWait>(path, { after: 0, limit: MAX_AT_ONCE }, over);
      this.#first = 0;
      this.hasOlder.value = false;
      // Reading from a position before `last_seq` fails, except from 0, so the next read starts there.
      return { ...page, next_after: Math.max(page.next_after, Number(error.problem.details.last_seq ?? 0)) };
    }
  }

  #keep(more: readonly MessageRecord[]): void {
    const known = new Set(this.all.value.map(({ seq }) => seq));
    const fresh = more.filter(({ seq }) => !known.has(seq));
    if (fresh.length === 0) return;
    const sorted = [...this.all.value, ...fresh].sort((one, other) => one.seq - other.seq);
    let bytes = 0;
    const tooMany = sorted.findLastIndex(({ size_bytes }, index) => {
      bytes += size_bytes;
      return bytes > MAX_BYTES || sorted.length - index > MAX_MESSAGES;
    });
    this.all.value = sorted.slice(tooMany + 1);
    const dropped = sorted[tooMany];
    if (!dropped) return;
    this.#isFull = true;
    this.#first = dropped.seq;
    this.hasOlder.value = true;
  }
}
