/** Owns a room's messages as a page has them: the newest first asked for, then those that come, and older ones when they are wanted. */
import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { auditList } from "../../../../shared/api/audit.ts";
import type { Problem } from "../../../../shared/api/errors.ts";
import type { agentWait, MessageRecord } from "../../../../shared/api/fabric.ts";
import { get, part, Refused } from "../../data/api.ts";
import { listen, whenOpen } from "../../data/live.ts";
import { isOfPage } from "../../data/resource.ts";

const PAGE = 200;
const MOST_AT_ONCE = 1000;
/** Beyond it the oldest go from the page. */
const MOST_MESSAGES = 20_000;
const MOST_BYTES = 32 * 1024 * 1024;
const EVERY_MS = 1000;

export interface Messages {
  /** In the order of the room. */
  all: Signal<readonly MessageRecord[]>;
  isLoaded: Signal<boolean>;
  hasOlder: Signal<boolean>;
  problem: Signal<Problem | null>;
  loadOlder(): void;
}

export function useMessages(roomId: string): Messages {
  const path = `/v1/rooms/${part(roomId)}`;
  const all = useSignal<readonly MessageRecord[]>([]);
  const isLoaded = useSignal(false);
  const hasOlder = useSignal(false);
  const problem = useSignal<Problem | null>(null);
  const older = useRef(() => {});
  useEffect(() => {
    const over = new AbortController();
    let first = 0;
    let last = 0;
    let asked = Number.NEGATIVE_INFINITY;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isAsking = false;
    const keep = (more: readonly MessageRecord[]) => {
      const known = new Set(all.value.map(({ seq }) => seq));
      const fresh = more.filter(({ seq }) => !known.has(seq));
      const sorted = [...all.value, ...fresh].sort((one, other) => one.seq - other.seq);
      let bytes = 0;
      const tooMany = sorted.findLastIndex(({ size_bytes }, index) => {
        bytes += size_bytes;
        return bytes > MOST_BYTES || sorted.length - index > MOST_MESSAGES;
      });
      all.value = sorted.slice(tooMany + 1);
    };
    const read = (after: number, limit: number) =>
      get<typeof agentWait>(`${path}/messages`, { after, limit }, over.signal);
    const tell = (error: unknown) => {
      if (over.signal.aborted) return;
      if (!(error instanceof Refused)) throw error;
      // The oldest are no longer kept: what is there is all there is.
      if (error.problem.code === "history_gone") hasOlder.value = false;
      else problem.value = error.problem;
      isLoaded.value = true;
    };
    /** Where the newest begin: the record of the last one says its place. */
    const begin = async () => {
      const { items } = await get<typeof auditList>(
        `${path}/audit`,
        { event: "message.", outcome: "success", limit: 50 },
        over.signal,
      );
      const newest = Math.max(0, ...items.map(({ details }) => Number(details.seq ?? 0)));
      first = last = Math.max(0, newest - PAGE);
      hasOlder.value = first > 0;
    };
    const more = async () => {
      timer = undefined;
      isAsking = true;
      asked = performance.now();
      try {
        if (!isLoaded.value) await begin();
        for (;;) {
          const page = await read(last, MOST_AT_ONCE);
          keep(page.items);
          last = Math.max(last, page.next_after, ...page.items.map(({ seq }) => seq));
          if (page.items.length < MOST_AT_ONCE) break;
        }
        problem.value = null;
        isLoaded.value = true;
      } catch (error) {
        tell(error);
      } finally {
        isAsking = false;
      }
    };
    const soon = () => {
      if (timer !== undefined || over.signal.aborted) return;
      timer = setTimeout(() => void (isAsking ? again() : more()), Math.max(0, asked + EVERY_MS - performance.now()));
    };
    const again = () => {
      timer = undefined;
      soon();
    };
    older.current = () => {
      const from = Math.max(0, first - PAGE);
      void read(from, first - from).then(({ items }) => {
        first = from;
        hasOlder.value = first > 0;
        keep(items);
      }, tell);
    };
    void whenOpen().then(() => (over.signal.aborted ? undefined : more()));
    const stop = listen((records) => {
      if (records === null || records.some((each) => /^message\.(?:sent|replied)$/.test(each.event) && !isOfPage(each)))
        soon();
    });
    return () => {
      over.abort();
      clearTimeout(timer);
      stop();
    };
  }, [path]);
  return { all, isLoaded, hasOlder, problem, loadOlder: () => older.current() };
}
