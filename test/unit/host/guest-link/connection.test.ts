/** Deadline for the set-up of a guest: longer if it also starts the programs of its template. */
import { expect, test } from "vitest";
import { makeLog } from "../../../../daemon/core/log.ts";
import { GuestConnection } from "../../../../daemon/host/guest-link/connection.ts";
import { type GuestLink, NOTHING_TO_ASK } from "../../../../daemon/host/guest-link/handshake.ts";

const CID = 9100;
const IDENTITY = { hostname: "h", machine_id: "0".repeat(32), env: {}, drive: null };

/** The deadline of the welcome. */
async function deadlineOf(nonce: string | null, startMs?: number): Promise<number> {
  const log = makeLog("error", () => {});
  const known = { generation: 1, secret: null, nonce };
  const connection = new GuestConnection(CID, IDENTITY, known, log, NOTHING_TO_ASK, startMs);
  const received = Promise.withResolvers<number>();
  const link = {
    ports: { to: 1, from: null },
    closed: new Promise(() => {}),
    close: () => {},
    hello: async () => ({ guest_cid: CID, nonce: nonce ?? "", generation: 1 }),
    welcome: (_: unknown, deadlineMs: number) => {
      received.resolve(deadlineMs);
      return new Promise(() => {});
    },
  } as unknown as GuestLink;
  connection.accept(link);
  return await received.promise;
}

test("it is longer by that time at the first set-up, and not afterwards", async () => {
  const usual = await deadlineOf(null);
  expect(await deadlineOf(null, 300_000)).toBe(usual + 300_000);
  expect(await deadlineOf("n", 300_000)).toBe(usual);
});
