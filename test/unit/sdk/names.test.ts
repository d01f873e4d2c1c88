/** Names that the SDK generates, against a service that accepts everything. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Roomd } from "../../../sdk/typescript/src/index.ts";
import { ok, ScriptedService } from "./scripted-service.ts";

let service: ScriptedService;
beforeEach(async () => {
  const all = { room_id: "a", sandbox_id: "sbx_1", state: "running", messages: [], reply: {} };
  service = await ScriptedService.start(() => ok(all));
});
afterEach(() => service.stop());

type Work = (roomd: Roomd, options: { idempotencyKey?: string }) => Promise<unknown>;

const room = (roomd: Roomd) => roomd.rooms.open("a");
const WORKS: [name: string, work: Work][] = [
  ["a room", ({ rooms }, options) => rooms.create(options)],
  ["a sandbox", (roomd, options) => room(roomd).createSandbox("w", { memoryMib: 512, ...options })],
  ["a command", (roomd, options) => room(roomd).sandbox("w").start("true", options)],
  ["a message", (roomd, options) => room(roomd).send("w", 1, options)],
  [
    "a request",
    (roomd, options) =>
      room(roomd)
        .agent("v")
        .request("w", 1, { timeoutMs: 10_000, ...options }),
  ],
  [
    "many messages",
    (roomd, options) =>
      room(roomd).sendMany(
        [1, 2].map((payload) => ({ destination: "w", payload })),
        options,
      ),
  ],
];

/** Requests of two programs that do the same, one after the other. */
async function askedByTwo(work: Work, options: { idempotencyKey?: string }) {
  for (let program = 0; program < 2; program++) {
    const roomd = new Roomd({ url: service.url });
    await work(roomd, options);
    roomd.close();
  }
  const [one, other, ...more] = service.asked.map(({ headers, body }) => ({ key: headers["idempotency-key"], body }));
  expect(more).toEqual([]);
  return [one, other];
}

describe("a created object", () => {
  test.each(WORKS)("with the same key sends the same request, also from another program: %s", async (_, work) => {
    const [one, other] = await askedByTwo(work, { idempotencyKey: "build-1" });
    expect(other).toEqual(one);
  });

  test.each(WORKS)("without a key has its own name: %s", async (_, work) => {
    const [one, other] = await askedByTwo(work, {});
    expect(other?.key).not.toBe(one?.key);
  });
});
