/** State of the MCP transport per client, and output in pages: bounded, and with every byte once. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { EventsReply, StreamEvent } from "../../../daemon/core/call/operation.ts";
import type { ToolCall } from "../../../daemon/edge/mcp/call.ts";
import { nameOf } from "../../../daemon/edge/mcp/names.ts";
import { Sessions } from "../../../daemon/edge/mcp/sessions.ts";
import { once } from "../../../daemon/edge/mcp/tools/once.ts";
import { readPage } from "../../../daemon/edge/mcp/tools/output-page.ts";
import type { KeyId } from "../../../shared/ids.ts";

const key = (name: string) => name as KeyId;

describe("sessions", () => {
  test("belong to the key, under any name", () => {
    const sessions = new Sessions();
    const one = sessions.of(key("a"), "editor 1");
    one.usage = true;
    expect(sessions.of(key("a"), "editor 1")).toBe(one);
    expect(sessions.of(key("b"), "editor 1").usage).toBe(false);
    sessions.end(key("a"), "editor 1");
    expect(sessions.of(key("a"), "editor 1").usage).toBe(false);
  });

  test("are evicted above the limit, least recently used first", () => {
    const sessions = new Sessions();
    const [first, second] = [sessions.of(key("a"), "first"), sessions.of(key("a"), "second")];
    for (let n = 0; n < 4095; n++) {
      sessions.of(key("a"), `other ${n}`);
      sessions.of(key("a"), "first");
    }
    expect(sessions.of(key("a"), "first")).toBe(first);
    expect(sessions.of(key("a"), "second")).not.toBe(second);
  });

  test("cancel the call of a number, and no other", () => {
    const session = new Sessions().of(key("a"), "one");
    const [one, other] = [session.begin(1), session.begin(2)];
    session.cancel(1);
    session.cancel(3);
    expect([one.signal.aborted, other.signal.aborted]).toEqual([true, false]);
  });
});

test("a name is derived from the idempotency key and its position", () => {
  expect(nameOf("exe", "again", ["room", "a"])).toBe(nameOf("exe", "again", ["room", "a"]));
  expect(nameOf("exe", "again", ["room", "b"])).not.toBe(nameOf("exe", "again", ["room", "a"]));
  expect(nameOf("exe", undefined, [])).not.toBe(nameOf("exe", undefined, []));
});

describe("a call that may take longer than a tool may", () => {
  const given = { room_id: "r", sandbox: "worker-1", name: "before" };
  const busy = { kind: "problem", problem: { code: "idempotency_in_progress" }, retry_after_seconds: 1 };
  const done = { kind: "done", body: { snapshot_id: "snap_1" } };

  /** A call with an operation that returns these replies, one after the other; `keys` are the idempotency keys of the attempts. */
  function callOf(replies: readonly unknown[], leftMs = 45_000) {
    const keys: unknown[] = [];
    const ask = async (_: unknown, { idempotency_key }: { idempotency_key: string }) => {
      keys.push(idempotency_key);
      return replies[Math.min(keys.length, replies.length) - 1];
    };
    const waitMs = (wantedMs: number) => Math.min(wantedMs, leftMs);
    const refuse = () => ({ kind: "problem", problem: { code: "not_ready" }, retry_after_seconds: 1 });
    const tool = { name: "sandbox_snapshot" };
    return { call: { ask, waitMs, refuse, tool, given } as unknown as ToolCall, keys };
  }

  test("is continued with a generated key if the client sent none", async () => {
    const { call, keys } = callOf([{ kind: "late" }]);
    const [answer, other] = [await once(call, given), await once(call, given)];
    expect(keys[0]).not.toBe(keys[1]);
    const next = { tool: "sandbox_snapshot", arguments: { ...given, idempotency_key: keys[0] } };
    expect(answer).toMatchObject({ ok: false, problem: { code: "not_ready" }, next });
    expect(other).toMatchObject({ next: { arguments: { idempotency_key: keys[1] } } });
  });

  test("waits for the previous call, which is still running", async () => {
    const { call, keys } = callOf([busy, done]);
    expect(await once(call, { ...given, idempotency_key: "mine" })).toEqual({ ok: true, result: done.body });
    expect(keys).toEqual(["mine", "mine"]);
  });

  test("waits for it no longer than the limit of a tool", async () => {
    const { call } = callOf([busy], 100);
    const answer = await once(call, { ...given, idempotency_key: "mine" });
    expect(answer).toMatchObject({ ok: false, next: { arguments: { idempotency_key: "mine" } } });
  });
});

describe("pages of output", () => {
  interface Piece {
    type: "stdout" | "stderr";
    bytes: Uint8Array;
  }

  /** A call that is answered with these pieces from after a seq on, and then with the exit. */
  function callOf(pieces: readonly Piece[]): ToolCall {
    const ask = async (_: unknown, { after }: { after: number }) => ({
      kind: "done",
      body: {},
      done: { outcome: "ok", events: { events: eventsOf(after), cancel: () => {} } satisfies EventsReply },
    });
    async function* eventsOf(after: number): AsyncGenerator<readonly StreamEvent[]> {
      for (const [index, { type, bytes }] of pieces.entries()) {
        const seq = index + 1;
        if (seq > after) yield [{ id: seq, data: { seq, type }, data_b64: bytes }];
      }
      yield [{ id: pieces.length + 1, data: { seq: pieces.length + 1, type: "exit" } }];
    }
    return { ask, leftMs: 48_000 } as unknown as ToolCall;
  }

  test("that follow each other give the output, and none exceeds its limit", async () => {
    const piece = fc.record({
      type: fc.constantFrom("stdout" as const, "stderr" as const),
      bytes: fc.uint8Array({ minLength: 1, maxLength: 40 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 20 }), fc.integer({ min: 1, max: 50 }), async (pieces, most) => {
        const call = callOf(pieces);
        const got = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
        let place = { after: 0, after_bytes: 0 };
        for (let ended = false; !ended; ) {
          const page = await readPage(call, { path: {}, ...place, most, waitMs: 0 });
          if (page.kind !== "page") throw new Error("the page was refused");
          expect(Math.max(page.stdout.length, page.stderr.length)).toBeLessThanOrEqual(most);
          expect(page.ended || page.stdout.length + page.stderr.length).toBeTruthy();
          got.stdout.push(page.stdout);
          got.stderr.push(page.stderr);
          ({ place, ended } = page);
        }
        for (const type of ["stdout", "stderr"] as const) {
          const written = pieces.flatMap((each) => (each.type === type ? [each.bytes] : []));
          expect(Buffer.concat(got[type]).equals(Buffer.concat(written))).toBe(true);
        }
      }),
      { numRuns: 300 },
    );
  });

  test("end between characters, so that text stays text", async () => {
    const text = "aé€𝄞\n".repeat(40);
    const pieces: Piece[] = [{ type: "stdout", bytes: Buffer.from(text) }];
    for (let most = 4; most < 30; most++) {
      let read = "";
      let place = { after: 0, after_bytes: 0 };
      for (let ended = false; !ended; ) {
        const page = await readPage(callOf(pieces), { path: {}, ...place, most, waitMs: 0 });
        if (page.kind !== "page") throw new Error("the page was refused");
        read += new TextDecoder("utf-8", { fatal: true }).decode(page.stdout);
        ({ place, ended } = page);
      }
      expect(read).toBe(text);
    }
  });
});
