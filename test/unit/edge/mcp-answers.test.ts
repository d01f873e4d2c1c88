/** Size of a tool's response: output bounded by head and tail, refusals of one line, lists within their budgets. */
import { describe, expect, test } from "vitest";
import { structured } from "../../../daemon/edge/mcp/answer.ts";
import { compact } from "../../../daemon/edge/mcp/compact.ts";
import { fits, HEAD_BYTES, NO_OUTPUT, outputText, TAIL_BYTES } from "../../../daemon/edge/mcp/output-text.ts";
import { readable } from "../../../daemon/edge/mcp/readable.ts";
import { bounded, MAX_RESULT, sizeOf } from "../../../daemon/edge/mcp/shorten.ts";
import { readEnds } from "../../../daemon/edge/mcp/tools/output-ends.ts";
import { TOOL_SETS } from "../../../shared/api/mcp/more-tools.ts";
import { listedInput, outputSchemaOf } from "../../../shared/api/mcp/tool.ts";

const MAX_LIST_BYTES = { usual: 45_000, small: 9_000, all: 90_000 };

describe("lists of tools", () => {
  test.each(Object.entries(MAX_LIST_BYTES))("%s takes at most %i bytes", (set, most) => {
    const { tools } = TOOL_SETS[set as keyof typeof TOOL_SETS];
    const listed = [...tools.values()].map((tool) => ({
      ...{ name: tool.name, title: tool.title, description: tool.description },
      ...{ inputSchema: listedInput(tool), outputSchema: outputSchemaOf(tool), annotations: tool.hints },
    }));
    expect(sizeOf({ jsonrpc: "2.0", id: 1, result: { tools: listed } })).toBeLessThanOrEqual(most);
  });

  test("contain no twins, keys or addresses, which are accepted anyway", () => {
    for (const tool of TOOL_SETS.all.tools.values()) {
      const shown = Object.keys(listedInput(tool).properties as object);
      expect(shown.filter((name) => /_json$|^idempotency_key$|^guest_cid$/.test(name))).toEqual([]);
    }
    expect(Object.keys(TOOL_SETS.usual.tools.get("sandbox_create")?.input.properties ?? {})).toContain("guest_cid");
  });
});

test("empty members are omitted, but not within the client's own values", () => {
  const payload = { nothing: null, no: false, empty: [] };
  expect(
    compact({ ok: true, a: null, b: false, c: "", d: [], e: { f: null }, items: [], exit_code: null, payload, n: 0 }),
  ).toEqual({ ok: true, items: [], exit_code: null, payload, n: 0 });
});

describe("refusals", () => {
  const problem = (more: object) =>
    ({
      ...{ type: "", title: "", status: 422, detail: "room_id is required.", code: "validation_failed" },
      ...{ retryable: false, request_id: "req_1", details: {}, errors: [], hint: null, ...more },
    }) as never;
  const shown = (more: object) => structured({ ok: false, problem: problem(more), retry_after_seconds: null });

  test("have one line", () => {
    expect(shown({ errors: [{ field: "room_id", code: "required", message: "room_id is required." }] })).toEqual({
      ...{ ok: false, status: 422, code: "validation_failed", detail: "room_id is required.", field: "room_id" },
    });
  });

  test("are at most 1 kB, for any error of the service", () => {
    const errors = Array.from({ length: 50 }, (_, at) => ({
      field: `f${at}`.repeat(99),
      code: "x",
      message: "m".repeat(500),
    }));
    const long = shown({ detail: "d".repeat(9000), hint: "h".repeat(9000), errors, details: { a: "x".repeat(9000) } });
    expect(sizeOf(long)).toBeLessThanOrEqual(1000);
  });
});

test("a long list is truncated to the limit of a result, and reports that", () => {
  const items = Array.from({ length: 1000 }, (_, at) => ({ room_id: `room-${at}`, text: "x".repeat(100) }));
  const cut = bounded({ items });
  expect(sizeOf(cut)).toBeLessThanOrEqual(MAX_RESULT + 100);
  expect((cut.items as object[]).length + Number(cut.items_left_out)).toBe(1000);
  expect(sizeOf(bounded({ text: "x".repeat(100_000) }))).toBeLessThanOrEqual(MAX_RESULT);
});

describe("output", () => {
  interface Piece {
    type: "stdout" | "stderr";
    bytes: Buffer;
  }
  const callOf = (pieces: readonly Piece[]) => {
    async function* eventsOf(after: number) {
      for (const [index, { type, bytes }] of pieces.entries()) {
        if (index + 1 > after) yield [{ id: index + 1, data: { seq: index + 1, type }, data_b64: bytes }];
      }
      yield [{ id: pieces.length + 1, data: { seq: pieces.length + 1, type: "exit" } }];
    }
    const ask = async (_: unknown, { after }: { after: number }) => ({
      ...{ kind: "done", body: {}, done: { outcome: "ok", events: { events: eventsOf(after), cancel: () => {} } } },
    });
    return { ask, leftMs: 48_000, waitMs: (ms: number) => ms } as never;
  };

  test("is its head and tail over both streams, with the exact number and position of omitted bytes", async () => {
    const pieces: Piece[] = Array.from({ length: 400 }, (_, at) => ({
      type: at % 3 === 0 ? ("stderr" as const) : ("stdout" as const),
      bytes: Buffer.from(`line ${at} ${"é".repeat(at % 60)}\n`),
    }));
    const all = Buffer.concat(pieces.map(({ bytes }) => bytes));
    const ends = await readEnds(callOf(pieces), { path: {}, after: 0, after_bytes: 0, waitMs: 0 });
    if (ends.kind !== "ends") throw new Error("refused");
    const head = ends.head.stdout.length + ends.head.stderr.length;
    const tail = ends.tail.stdout.length + ends.tail.stderr.length;
    expect(head).toBeGreaterThan(HEAD_BYTES - 4);
    expect(head).toBeLessThanOrEqual(HEAD_BYTES);
    expect(tail).toBeGreaterThan(TAIL_BYTES - 4);
    expect(tail).toBeLessThanOrEqual(TAIL_BYTES);
    expect(head + tail + ends.left_out_bytes).toBe(all.length);
    expect(ends).toMatchObject({ ended: true, place: { after: 400, after_bytes: 0 } });
    const { after, after_bytes } = ends.rest;
    const before = pieces.slice(0, after).reduce((sum, { bytes }) => sum + bytes.length, 0) + after_bytes;
    expect(before).toBe(head);
  });

  test("that is short is whole, and bytes that are not UTF-8 are base64", async () => {
    const short = await readEnds(callOf([{ type: "stdout", bytes: Buffer.from("hi\n") }]), {
      ...{ path: {}, after: 0, after_bytes: 0, waitMs: 0 },
    });
    expect(short).toMatchObject({ left_out_bytes: 0, ended: true });
    const bytes = Buffer.from([0xff, 0xfe, 0x00]);
    const { text } = outputText(
      { head: { stdout: bytes, stderr: Buffer.from("e\n") }, tail: NO_OUTPUT, left_out_bytes: 0 },
      "",
      true,
    );
    expect(text.split("\n").slice(1)).toEqual([bytes.toString("base64"), "[stderr]", "e", ""]);
  });

  test("of control characters alone is within 40 kB as JSON", () => {
    const full = (bytes: number) => ({ stdout: Buffer.alloc(bytes, 0x1b), stderr: Buffer.alloc(0) });
    const { text, left_out_bytes } = outputText(
      { head: full(HEAD_BYTES), tail: full(TAIL_BYTES), left_out_bytes: 0 },
      "",
      true,
    );
    expect(sizeOf(text)).toBeLessThan(40_000);
    expect(left_out_bytes).toBeGreaterThan(0);
    const single = outputText({ head: full(HEAD_BYTES + TAIL_BYTES), tail: NO_OUTPUT, left_out_bytes: 0 }, "", true);
    expect(sizeOf(single.text)).toBeLessThan(40_000);
    expect(single.left_out_bytes + single.shown_bytes.stdout).toBe(HEAD_BYTES + TAIL_BYTES);
    expect([fits(full(HEAD_BYTES + TAIL_BYTES)), fits(full(HEAD_BYTES))]).toEqual([false, true]);
    expect(sizeOf(readable(Buffer.alloc(32 * 1024, 0x1b), true).toString())).toBeLessThan(40_000);
  });
});
