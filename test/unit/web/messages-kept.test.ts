/** A room's messages on a page: the newest first, older ones on demand, and the remaining ones if some were removed. */
import { afterEach, expect, test, vi } from "vitest";
import { MessageCache } from "../../../daemon/web/room/messages/kept.ts";

afterEach(() => vi.unstubAllGlobals());

const { signal } = new AbortController();
const seqs = ({ all }: MessageCache) => all.value.map(({ seq }) => seq);
const upTo = (last: number) => Array.from({ length: last }, (_, n) => n + 1);

/** A room that retains these messages; up to `removed` only some remain. */
function room(kept: readonly number[], removed = 0): MessageCache {
  vi.stubGlobal("fetch", async (path: string) => {
    const { pathname, searchParams } = new URL(path, "http://room");
    if (pathname.endsWith("/audit")) return Response.json({ items: [{ details: { seq: kept.at(-1) } }] });
    const after = Number(searchParams.get("after"));
    if (after > 0 && after < removed) {
      return Response.json({ code: "history_gone", details: { last_seq: removed } }, { status: 410 });
    }
    const left = kept.filter((seq) => seq > after);
    const items = left.slice(0, Number(searchParams.get("limit"))).map((seq) => ({ seq, size_bytes: 1 }));
    const next_cursor = items.length < left.length ? "more" : null;
    return Response.json({ items, next_cursor, next_after: items.at(-1)?.seq ?? after });
  });
  return new MessageCache("/v1/rooms/r");
}

test("the newest are loaded, then older ones without a gap", async () => {
  const kept = room(upTo(1500));
  await kept.newer(signal);
  expect([seqs(kept), kept.hasOlder.value]).toEqual([upTo(1500).slice(1300), true]);
  await kept.older();
  expect(seqs(kept)).toEqual(upTo(1500).slice(1100));
});

test("a requested message is loaded with all later ones", async () => {
  const kept = room(upTo(5000));
  await kept.newer(signal);
  await kept.reach(2500, signal);
  expect(seqs(kept)).toEqual(upTo(5000).slice(1800));
});

test("after a removal the remaining messages are present, and no older ones are announced", async () => {
  const kept = room([7, ...upTo(1500).slice(1400)], 1400);
  await kept.newer(signal);
  expect([seqs(kept), kept.hasOlder.value]).toEqual([[7, ...upTo(1500).slice(1400)], false]);
});
