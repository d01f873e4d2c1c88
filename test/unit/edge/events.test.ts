import { describe, expect, test } from "vitest";
import type { StreamEvent } from "../../../daemon/core/call/operation.ts";
import { eventsResponse } from "../../../daemon/edge/http/events.ts";
import { boundOf, longestTurn } from "../../harness/event-loop/longest-turn.ts";

async function* endless(): AsyncGenerator<readonly StreamEvent[]> {
  for (let id = 1; ; id++) yield [{ id, data: { seq: id } }];
}

function reply(ms?: number) {
  const gone = Promise.withResolvers<void>();
  const cut = gone.resolve;
  const events = { events: endless(), cancel: () => {}, ...(ms === undefined ? {} : { slow: { ms, cut } }) };
  const body = eventsResponse(events, "text/event-stream", {}).body;
  if (!body) throw new Error("no body");
  return { reader: body.getReader() as ReadableStreamDefaultReader<Uint8Array>, gone: gone.promise };
}

const textOf = ({ value }: { value?: Uint8Array | undefined }) => new TextDecoder().decode(value);

describe("a stream of events", () => {
  test("numbers the events that can be resumed from", async () => {
    const { reader } = reply();
    expect(textOf(await reader.read())).toBe('id: 1\ndata: {"seq":1}\n\n');
    expect(textOf(await reader.read())).toBe('id: 2\ndata: {"seq":2}\n\n');
    await reader.cancel();
  });

  test("has bytes as base64, of any length and next to any text, on one line", async () => {
    for (let length = 0; length < 5; length++) {
      const data_b64 = Uint8Array.from({ length }, (_, index) => 255 - index);
      const events = (async function* () {
        yield [1, 2].map((id) => ({ id, data: { seq: id, text: "ß\n€" }, data_b64 }));
      })();
      const lines = (await eventsResponse({ events, cancel: () => {} }, null, {}).text()).split("\n");
      expect(lines.map((line) => line && JSON.parse(line))).toEqual([
        ...[1, 2].map((seq) => ({ seq, text: "ß\n€", data_b64: Buffer.from(data_b64).toString("base64") })),
        "",
      ]);
    }
  });

  test("yields to others while it sends much", async () => {
    const data_b64 = new Uint8Array(48 * 1024);
    const events = (async function* () {
      for (let id = 0; id < 2_000; id++) yield [{ id, data: { seq: id }, data_b64 }];
    })();
    const body = eventsResponse({ events, cancel: () => {} }, null, {}).body;
    let bytes = 0;
    const longest = await longestTurn(async () => {
      for await (const chunk of body ?? []) bytes += chunk.byteLength;
    });
    expect(bytes).toBeGreaterThan(2_000 * 64 * 1024);
    expect(longest).toBeLessThan(boundOf(20));
  });

  test("disconnects a reader that does not read, and skips no event", async () => {
    const { reader, gone } = reply(50);
    await reader.read();
    await reader.read();
    await gone;
    await expect(reader.read()).rejects.toThrow("too slow");
  });

  test("continues for a reader that keeps up, for any duration", async () => {
    const { reader } = reply(200);
    for (let id = 1; id <= 20; id++) {
      expect(textOf(await reader.read())).toContain(`id: ${id}\n`);
      await Bun.sleep(20);
    }
    await reader.cancel();
  });
});
